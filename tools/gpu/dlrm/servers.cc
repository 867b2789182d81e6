#include "tools/gpu/dlrm/servers.h"

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "ops/mxcsr.h"
#include "proto/core/shard_map.h"
#include "proto/core/table_spec.h"
#include "proto/core/uid.h"
#include "proto/runtime/base/executor.h"
#include "proto/runtime/base/timer.h"
#include "proto/runtime/transport/inproc_transport.h"
#include "proto/wire/device_values.h"
#include "proto/wire/message_codec.h"
#include "server/data_service.h"
#include "server/job/in_parallel.h"
#include "server/job/opening.h"
#include "server/job/plan.h"
#include "server/job/server_job.h"
#include "server/shard/request.h"
#include "server/shard/shard.h"
#include "server/table/gpu_memory.h"
#include "server/table/memory.h"
#include "storage/gpu/device/backend.h"
#include "storage/row/layout.h"
#include "storage/row/table.h"

namespace strata::gpu_check {
namespace {

using server::JobPlan;
using server::OpenedJob;
using server::ServerJob;
using server::ShardPlan;
using storage::RowTable;

constexpr uint64_t kJob = 1, kGeneration = 1, kMapEpoch = 1;
constexpr JobIdentity kIdentity = {{0, 1}, {0, 1}};  // alone in its process
// Of those who only ask; workers' sessions have higher numbers.
constexpr uint64_t kAskingSession = 1;
constexpr uint64_t kRequestBytes = uint64_t{8} << 30;
constexpr absl::Duration kCallTimeout = absl::Seconds(20);

// Puts the rows of those of the keys 0 .. rows - 1 that lie in the shard.
absl::Status Fill(const JobPlan& plan, const ShardPlan& shard, uint64_t rows, RowTable* table) {
  ops::ExactFloatScope exact;
  const TableSpec& spec = plan.tables[0];
  const storage::RowLayout layout = storage::RowLayout::For(spec);
  const Position first = plan.partitioning.First(shard.range.first);
  const Position last = plan.partitioning.Last(shard.range.last);
  std::vector<Position> positions;
  for (uint64_t key = 0; key < rows; ++key) {
    const Position position = spec.PositionOfKey(Key(key));
    if (first <= position && position <= last) positions.push_back(position);
  }
  std::sort(positions.begin(), positions.end());
  table->Expect(positions.size());
  const size_t most = std::min<size_t>(server::kGpuDeviceBatch, table->max_batch());
  std::vector<storage::RowRef> refs(most);
  for (size_t at = 0; at < positions.size(); at += most) {
    const auto part =
        std::span<const Position>(positions).subspan(at, std::min(most, positions.size() - at));
    const std::span<storage::RowRef> here = std::span(refs).first(part.size());
    if (absl::Status s = table->Resolve(part, storage::Access::kUpdate, here); !s.ok()) return s;
    for (size_t i = 0; i < part.size(); ++i) {
      storage::InitialRow(spec, layout, plan.seed, spec.KeyAtPosition(part[i]), here[i].row);
    }
    table->Release();
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<server::Shard>> FilledShard(const JobPlan& plan,
                                                           const ShardPlan& shard, uint64_t rows) {
  auto tables = server::MakeTables(plan.tables, plan.partitioning.First(shard.range.first),
                                   plan.partitioning.Last(shard.range.last), shard.memory,
                                   /*below=*/nullptr, plan.make_gpu);
  if (!tables.ok()) return tables.status();
  if (absl::Status s = Fill(plan, shard, rows, (*tables)[0].get()); !s.ok()) return s;
  return std::make_unique<server::Shard>(server::OptionsOf(plan, shard), *std::move(tables));
}

class Servers : public DlrmServers {
 public:
  explicit Servers(const DlrmServersOptions& options)
      : o_(options),
        pool_(MakeThreadPool(options.threads, "shards", ops::RestoreExactFloatState)),
        timer_(MakeTimer()),
        memory_(kRequestBytes),
        transport_(MakeInProcTransport()),
        hosts_(options.servers) {}

  ~Servers() override {
    for (Host& host : hosts_) {
      host.listener.reset();
      std::shared_ptr<ServerJob> job = host.service.Remove(JobId(kJob));
      // Handlers that found it before hand on their request and let go.
      while (job != nullptr && job.use_count() > 1) std::this_thread::yield();
    }
  }

  absl::Status Open() {
    const ShardMap map =
        ShardMap::Even(MapEpoch(kMapEpoch), Partitioning(o_.job.spec().storage().partitions()),
                       o_.servers, o_.job.spec().storage().shards_per_server());
    for (const ShardPlace& place : map.shards()) {
      ShardAssignment& s = assigned_.emplace_back();
      s.set_shard(place.id.value);
      s.set_first_partition(place.range.first.value);
      s.set_last_partition(place.range.last.value);
      s.set_server(place.server);
    }
    std::vector<JobPlan> plans;
    for (uint32_t i = 0; i < o_.servers; ++i) {
      auto plan = PlanOf(i);
      if (!plan.ok()) return plan.status();
      plans.push_back(*std::move(plan));
    }
    std::vector<std::unique_ptr<server::Shard>> shards(assigned_.size());
    absl::Status status = server::InParallel(shards.size(), [&](size_t i) {
      const uint32_t per_server = o_.job.spec().storage().shards_per_server();
      const JobPlan& plan = plans[i / per_server];
      auto shard = FilledShard(plan, plan.shards[i % per_server], o_.rows);
      if (shard.ok()) shards[i] = *std::move(shard);
      return shard.status();
    });
    if (!status.ok()) return status;
    size_t next = 0;
    for (uint32_t i = 0; i < o_.servers; ++i) {
      OpenedJob opened;
      for (size_t n = plans[i].shards.size(); n > 0; --n) {
        opened.shards.push_back(std::move(shards[next++]));
        opened.images.emplace_back();
      }
      if (status = Serve(i, std::move(plans[i]), std::move(opened)); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  DataTransport* transport() override { return transport_.get(); }

  void Describe(WorkerJobDirective* directive) const override {
    directive->set_job(kJob);
    directive->set_cluster_id(kIdentity.cluster.text());
    directive->set_job_uid(kIdentity.job.text());
    directive->set_generation(kGeneration);
    directive->set_map_epoch(kMapEpoch);
    for (const ShardAssignment& shard : assigned_) *directive->add_shards() = shard;
    for (const Host& host : hosts_) directive->add_server_addresses(host.listener->address());
  }

  absl::StatusOr<std::string> OfferedDevice() override {
    const wire::Header header{JobId(kJob), SessionId(kAskingSession), Generation(kGeneration),
                              MapEpoch(kMapEpoch)};
    std::string device;
    for (size_t i = 0; i < hosts_.size(); ++i) {
      const auto reply =
          transport_->Connect({hosts_[i].listener->address(), "s"}, Caller::Nobody())
              ->CallAndWait(DataMethod::kOpenSession,
                            wire::EncodeOpenSessionRequest(wire::OpenSessionFor(header, kIdentity)),
                            kCallTimeout);
      if (!reply.ok()) return reply.status();
      const std::string offered =
          reply->device_values() == nullptr ? "" : reply->device_values()->device;
      if (i == 0) device = offered;
      if (offered != device) return std::string();
    }
    return device;
  }

  DlrmCounters counters() const override {
    DlrmCounters sum;
    sum.clock = ~uint64_t{0};
    for (const Host& host : hosts_) {
      for (const auto& runner : host.service.Find(JobId(kJob))->shards()) {
        const server::ShardView& view = runner->view();
        sum.clock = std::min<uint64_t>(sum.clock, view.clock);
        sum.rows += view.rows;
        sum.hbm_rows += view.hbm_rows;
        sum.hbm_evicted += view.hbm_evicted;
        sum.refused_rows += view.refused_rows;
      }
      for (const auto& method : host.service.counters()) {
        sum.message_bytes += method.request_bytes + method.reply_bytes;
      }
    }
    return sum;
  }

 private:
  struct Host {
    server::DataService service;
    std::unique_ptr<DataListener> listener;
  };

  absl::StatusOr<JobPlan> PlanOf(uint32_t server) const {
    ServerJobDirective directive;
    directive.set_job(kJob);
    directive.set_cluster_id(kIdentity.cluster.text());
    directive.set_job_uid(kIdentity.job.text());
    directive.set_generation(kGeneration);
    directive.set_map_epoch(kMapEpoch);
    *directive.mutable_spec() = o_.job;
    *directive.mutable_shape() = o_.shape;
    directive.set_server_index(server);
    for (const ShardAssignment& shard : assigned_) *directive.add_shards() = shard;
    auto plan = server::PlanJob(directive);
    if (!plan.ok()) return plan.status();
    plan->make_gpu = [api = o_.api](const storage::gpu::GpuShape& shape) {
      return storage::gpu::MakeDeviceGpuBackend(api, shape, {.max_batch = server::kGpuDeviceBatch});
    };
    return plan;
  }

  absl::Status Serve(uint32_t index, JobPlan plan, OpenedJob opened) {
    ServerJob::Options options;
    options.pool = options.disk = pool_.get();
    options.timer = timer_.get();
    options.memory = &memory_;
    options.incarnation = 1 + index;
    Host& host = hosts_[index];
    host.service.Add(std::make_shared<ServerJob>(std::move(plan), std::move(opened), options));
    auto listener = transport_->Listen(absl::StrCat("server-", index), &host.service);
    if (!listener.ok()) return listener.status();
    host.listener = *std::move(listener);
    return absl::OkStatus();
  }

  const DlrmServersOptions o_;
  const std::unique_ptr<Executor> pool_;
  const std::unique_ptr<Timer> timer_;
  server::RequestMemory memory_;
  const std::unique_ptr<DataTransport> transport_;
  std::vector<ShardAssignment> assigned_;
  std::vector<Host> hosts_;  // fixed after construction; their jobs use what stands above
};

}  // namespace

absl::StatusOr<std::unique_ptr<DlrmServers>> DlrmServers::Start(const DlrmServersOptions& options) {
  auto servers = std::make_unique<Servers>(options);
  if (absl::Status s = servers->Open(); !s.ok()) return s;
  return std::unique_ptr<DlrmServers>(std::move(servers));
}

}  // namespace strata::gpu_check

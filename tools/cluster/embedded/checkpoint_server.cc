#include "tools/cluster/embedded/checkpoint_server.h"

#include <algorithm>
#include <cstdint>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/core/uid.h"
#include "proto/job/checks/byte_size.h"
#include "proto/job/schema/schema_mapping.h"
#include "proto/job/schema/schema_start.h"
#include "proto/runtime/base/id_source.h"
#include "proto/runtime/credentials/caller.h"
#include "proto/runtime/credentials/identity.h"
#include "proto/runtime/files/manifest_io.h"
#include "proto/runtime/transport/inproc_transport.h"
#include "proto/runtime/transport/scheduler_client.h"
#include "proto/runtime/transport/transport.h"
#include "server/server.h"
#include "worker/client/server_links.h"

namespace strata {
namespace {

constexpr uint64_t kJob = 1;
constexpr uint64_t kSession = 1;
constexpr char kServer[] = "predict", kReader[] = "predict";
// Shards of a server by default, at least: a limit that the job's servers admit is divided by no
// more.
constexpr uint32_t kLimitedShards = 4;
// As a server takes by default.
constexpr uint64_t kMostMemtableBytes = uint64_t{8} << 20;

// A scheduler that knows one server and one thing to say: hold this checkpoint. Thread-safe.
class FixedDirective : public SchedulerClient {
 public:
  FixedDirective(ServerJobDirective job, const std::atomic<bool>* cancelled)
      : job_(std::move(job)), cancelled_(cancelled) {}

  absl::StatusOr<NodeDirective> Sync(const NodeReport& report, absl::Duration) override {
    absl::MutexLock lock(&mu_);
    for (const ServerJobReport& r : report.server_jobs()) {
      if (r.job() == kJob) report_ = r;
    }
    stopped_ = cancelled_ != nullptr && cancelled_->load();
    NodeDirective directive;
    directive.set_session(kSession);
    directive.set_version(1);
    directive.set_lease_ms(10000);
    directive.set_cluster_id(job_.cluster_id());
    directive.set_transient(true);
    *directive.add_server_jobs() = job_;
    return directive;
  }

  // Waits until the server holds the checkpoint, or says why it cannot.
  absl::Status AwaitOpen() {
    absl::MutexLock lock(&mu_);
    const auto settled = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return report_.state() == ServerJobReport::OPEN ||
             report_.state() == ServerJobReport::FAILED ||
             report_.state() == ServerJobReport::LOST || stopped_ || Tries();
    };
    mu_.Await(absl::Condition(&settled));
    if (report_.state() == ServerJobReport::OPEN) return absl::OkStatus();
    if (stopped_) return absl::CancelledError("interrupted");
    if (Tries()) return NoRoom(report_.message());
    return absl::DataLossError(report_.message());
  }

  // What the server has no room for; OK: nothing.
  absl::Status CheckRoom() {
    absl::MutexLock lock(&mu_);
    for (const Trouble& t : report_.troubles()) {
      if (t.reason() == "DiskFull" || t.reason() == "DiskFailing" || t.reason() == "MemoryFull") {
        return NoRoom(t.message());
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<SubmitReply> Submit(const SubmitRequest&, absl::Duration) override {
    return None();
  }
  absl::StatusOr<JobStatus> GetJob(const JobRef&, absl::Duration) override { return None(); }
  absl::StatusOr<ListJobsReply> ListJobs(absl::Duration) override { return None(); }
  absl::StatusOr<JobStatus> CancelJob(const JobRef&, absl::Duration) override { return None(); }
  absl::StatusOr<CreateCheckpointReply> CreateCheckpoint(const CreateCheckpointRequest&,
                                                         absl::Duration) override {
    return None();
  }
  absl::StatusOr<ClusterStatus> GetCluster(absl::Duration) override { return None(); }
  absl::StatusOr<JobShards> GetShards(const JobRef&, absl::Duration) override { return None(); }
  absl::StatusOr<GetEventsReply> GetEvents(const GetEventsRequest&, absl::Duration) override {
    return None();
  }
  absl::StatusOr<SettleQuarantineReply> SettleQuarantine(const SettleQuarantineRequest&,
                                                         absl::Duration) override {
    return None();
  }

 private:
  static absl::Status None() { return absl::UnimplementedError("there is no scheduler here"); }

  // Whether the server could not load the checkpoint, and tries again as long as it cannot: here
  // nobody would be told why.
  bool Tries() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return report_.state() == ServerJobReport::OPENING && !report_.message().empty();
  }
  static absl::Status NoRoom(const std::string& text) {
    return absl::ResourceExhaustedError(absl::StrCat(
        text,
        "; rows beyond --dram-bytes need room in $TMPDIR, which may be set to another folder"));
  }

  const ServerJobDirective job_;
  const std::atomic<bool>* const cancelled_;
  absl::Mutex mu_;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  ServerJobReport report_ ABSL_GUARDED_BY(mu_);
};

// The checkpoint as one server's job: nothing logged, everything in one place.
ServerJobDirective DirectiveFor(const FoundCheckpoint& found, const ShardMap& map,
                                const std::string& dram_bytes, const JobIdentity& identity) {
  ServerJobDirective d;
  d.set_job(kJob);
  d.set_cluster_id(identity.cluster.text());
  d.set_job_uid(identity.job.text());
  d.set_transient(true);
  d.set_generation(1);
  *d.mutable_spec() = found.manifest.job();
  StorageSpec& storage = *d.mutable_spec()->mutable_spec()->mutable_storage();
  storage.set_durability("memory");
  storage.set_dram_bytes_per_server(dram_bytes);
  storage.clear_gpu_bytes_per_server();
  storage.clear_gpu_backend();
  storage.clear_directory();
  d.mutable_spec()->mutable_spec()->mutable_output()->clear_removed();
  d.mutable_shape()->set_fields(found.manifest.fields());
  d.mutable_shape()->set_numeric(found.manifest.numeric());
  d.set_map_epoch(map.epoch().value);
  for (const ShardPlace& s : map.shards()) {
    ShardAssignment* a = d.add_shards();
    a->set_shard(s.id.value);
    a->set_first_partition(s.range.first.value);
    a->set_last_partition(s.range.last.value);
  }
  d.set_restore_from(found.folder);
  const Schema& schema = found.manifest.schema();
  *d.mutable_restore_plan() =
      MakeRestorePlan(MapSchemas(schema, schema), schema, schema, InitFromSpec());
  d.set_start_step(found.manifest.step());
  return d;
}

uint32_t ShardsOf(const Manifest& manifest, bool limited) {
  const uint32_t cores = std::max(1u, std::thread::hardware_concurrency());
  const uint32_t given = manifest.job().spec().storage().shards_per_server();
  const uint32_t wanted = !limited ? cores * 2 : given > 0 ? given : kLimitedShards;
  return std::min(wanted, manifest.partitions());
}

class Server : public CheckpointServer {
 public:
  Server(const FoundCheckpoint& found, const std::string& dram_bytes, bool limited,
         const std::atomic<bool>* cancelled)
      : map_(ShardMap::Even(MapEpoch(1), Partitioning(found.manifest.partitions()), 1,
                            ShardsOf(found.manifest, limited))),
        identity_{DrawId<ClusterId>(*IdSource::System()), DrawId<JobUid>(*IdSource::System())},
        scheduler_(DirectiveFor(found, map_, dram_bytes, identity_), cancelled),
        transport_(MakeInProcTransport()),
        links_(transport_.get(), 1, {.name = kReader, .role = Role::kReader}) {
    links_.SetPeers({{kServer, kServer}});
  }

  absl::Status Open(const std::string& directory, uint64_t limit) {
    server::ServerOptions options;
    options.name = kServer;
    options.scheduler = &scheduler_;
    options.transport = transport_.get();
    options.listen_address = kServer;
    options.directory = directory;
    if (limit > 0) {
      // What is on its way to SSD is in memory twice.
      options.tier_memtable_bytes =
          std::clamp(limit / 8, server::ServerOptions::kLeastMemtableBytes, kMostMemtableBytes);
    }
    auto server = server::Server::Start(options);
    if (!server.ok()) return server.status();
    server_ = *std::move(server);
    return scheduler_.AwaitOpen();
  }

  const ShardMap& map() const override { return map_; }

  std::unique_ptr<ParameterClient> MakeClient(const Exchange* exchange) override {
    ParameterClientOptions options;
    options.exchange = exchange;
    options.links = &links_;
    options.header = {JobId(kJob), SessionId(kSession), Generation(1), map_.epoch()};
    options.identity = identity_;
    options.give_up_after = absl::Seconds(30);
    return std::make_unique<ParameterClient>(options);
  }

  absl::Status Explain(const absl::Status& error) override {
    const absl::Status room = scheduler_.CheckRoom();
    return room.ok() ? error : room;
  }

 private:
  const ShardMap map_;
  const JobIdentity identity_;
  FixedDirective scheduler_;
  const std::unique_ptr<DataTransport> transport_;
  ServerLinks links_;
  std::unique_ptr<server::Server> server_;
};

// A server speaks of the job that it has; here the limit may be the command's.
absl::Status OfLimit(const absl::Status& status, bool given) {
  constexpr absl::string_view kOfJob = "spec.storage.dramBytesPerServer";
  constexpr absl::string_view kOption = "--dram-bytes";
  if (!absl::StrContains(status.message(), kOfJob)) return status;
  const std::string text =
      given
          ? absl::StrReplaceAll(status.message(), {{kOfJob, kOption},
                                                   {", or spec.storage.shardsPerServer lower", ""}})
          : absl::StrCat(status.message(), " (", kOption, " gives another limit)");
  return absl::Status(status.code(), text);
}

}  // namespace

absl::StatusOr<std::unique_ptr<CheckpointServer>> CheckpointServer::Start(
    const FoundCheckpoint& found, const CheckpointServerOptions& options) {
  const std::string& of_job = found.manifest.job().spec().storage().dram_bytes_per_server();
  const std::string& limit = options.dram_bytes.empty() ? of_job : options.dram_bytes;
  const auto bytes = ParseBytes(limit.empty() ? "0" : limit);
  if (!bytes.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--dram-bytes: ", bytes.status().message()));
  }
  auto server =
      std::make_unique<Server>(found, absl::StrCat(*bytes), *bytes > 0, options.cancelled);
  const absl::Status s =
      OfLimit(server->Open(options.directory, *bytes), !options.dram_bytes.empty());
  if (s.ok()) return std::unique_ptr<CheckpointServer>(std::move(server));
  if (!absl::IsDataLoss(s)) return s;
  // Not of the files: what was asked for cannot be done.
  if (VerifyCheckpointFiles(found.folder, found.manifest).ok()) {
    return absl::FailedPreconditionError(s.message());
  }
  return WithWholeOne(s, found.folder);
}

}  // namespace strata

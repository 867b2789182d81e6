#include "tools/cluster/embedded/cluster.h"

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/runtime/credentials/caller.h"
#include "proto/runtime/credentials/identity.h"
#include "proto/runtime/files/machine_id.h"
#include "proto/runtime/transport/inproc_transport.h"
#include "proto/runtime/transport/scheduler_caller.h"
#include "proto/runtime/transport/scheduler_client.h"
#include "proto/runtime/transport/transport.h"
#include "scheduler/scheduler.h"
#include "scheduler/store/memory_metadata_store.h"
#include "server/server.h"
#include "storage/gpu/device/backend.h"

namespace strata {
namespace {

// Reports are cheap inside one process, and short jobs are many round trips.
constexpr absl::Duration kSyncWait = absl::Milliseconds(20);

// As of strata-server.
constexpr uint32_t kDeviceBatch = 4096;

// The transport of one process: what it connects, it calls as itself, as a certificate would have
// it.
class OwnTransport : public DataTransport {
 public:
  OwnTransport(DataTransport* transport, Role role, std::string name)
      : transport_(transport), role_(role), name_(std::move(name)) {}

  absl::StatusOr<std::unique_ptr<DataListener>> Listen(const std::string& address,
                                                       DataHandler* handler) override {
    return transport_->Listen(address, handler);
  }
  std::shared_ptr<DataChannel> Connect(const DataPeer& peer, const Caller& caller) override {
    return transport_->Connect(peer, {.name = name_, .role = role_, .jobs = caller.jobs});
  }

 private:
  DataTransport* const transport_;
  const Role role_;
  const std::string name_;
};

class Cluster : public EmbeddedCluster {
 public:
  explicit Cluster(const EmbeddedClusterOptions& options)
      : o_(options),
        own_transport_(o_.transport == nullptr ? MakeInProcTransport() : nullptr),
        transport_(o_.transport == nullptr ? own_transport_.get() : o_.transport),
        servers_(options.servers),
        workers_(options.workers) {}

  ~Cluster() override {
    // Workers wait for servers, everybody asks the scheduler.
    for (auto& w : workers_) w.reset();
    for (auto& s : servers_) s.reset();
  }

  absl::Status Open() {
    scheduler::SchedulerOptions options;
    options.store = scheduler::MakeMemoryMetadataStore();
    options.lease = o_.lease;
    options.paths = o_.paths;
    options.ids = o_.ids;
    options.transient = true;
    options.sign_sessions = true;
    options.tick_interval = kSyncWait;
    auto scheduler = scheduler::Scheduler::Start(std::move(options));
    if (!scheduler.ok()) return scheduler.status();
    scheduler_ = *std::move(scheduler);
    for (uint32_t i = 0; i < o_.servers; ++i) {
      server_transports_.emplace_back(transport_, Role::kServer, absl::StrCat("server-", i));
      if (absl::Status s = StartServer(i); !s.ok()) return s;
    }
    for (uint32_t i = 0; i < o_.workers; ++i) {
      if (absl::Status s = StartWorker(i); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

  SchedulerClient& scheduler() override { return *scheduler_; }
  const Worker* worker(uint32_t index) const override { return workers_[index].get(); }

  void StopServer(uint32_t index) override { servers_[index].reset(); }

  absl::Status StartServer(uint32_t index) override {
    server::ServerOptions options;
    options.name = absl::StrCat("server-", index);
    options.machine_id = "this process";
    options.machine_bytes = ThisMachine().memory_bytes;
    options.scheduler = As({.name = options.name, .role = Role::kServer});
    options.transport = &server_transports_[index];
    options.listen_address = options.name;
    options.directory = absl::StrCat(o_.directory, "/", options.name);
    options.sync_wait = kSyncWait;
    options.paths = o_.paths;
    options.tier_memtable_bytes = o_.tier_memtable_bytes;
    if (o_.server_device != nullptr) {
      options.make_gpu = [api = o_.server_device](const storage::gpu::GpuShape& shape) {
        return storage::gpu::MakeDeviceGpuBackend(api, shape, {.max_batch = kDeviceBatch});
      };
      options.device = o_.server_device->properties().uuid;
    }
    auto server = server::Server::Start(options);
    if (!server.ok()) return server.status();
    servers_[index] = *std::move(server);
    return absl::OkStatus();
  }

  void StopWorker(uint32_t index) override { workers_[index].reset(); }

  absl::Status StartWorker(uint32_t index) override {
    WorkerOptions options;
    options.name = absl::StrCat("worker-", index);
    options.transport = transport_;
    options.caller = {.name = options.name, .role = Role::kWorker};
    options.scheduler = As(options.caller);
    options.data = o_.data;
    if (index < o_.devices.size()) options.device = o_.devices[index];
    options.row_path = o_.row_path;
    options.paths = o_.paths;
    options.sync_wait = kSyncWait;
    auto worker = Worker::Start(options);
    if (!worker.ok()) return worker.status();
    workers_[index] = *std::move(worker);
    return absl::OkStatus();
  }

 private:
  // The scheduler, as `caller` may call it.
  SchedulerClient* As(const Caller& caller) {
    auto& client = clients_[caller.name];
    if (client == nullptr) client = CallSchedulerAs(caller, scheduler_.get());
    return client.get();
  }

  const EmbeddedClusterOptions o_;
  const std::unique_ptr<DataTransport> own_transport_;
  DataTransport* const transport_;
  std::deque<OwnTransport> server_transports_;  // by index
  std::unique_ptr<scheduler::Scheduler> scheduler_;
  std::map<std::string, std::unique_ptr<SchedulerClient>> clients_;  // by node
  std::vector<std::unique_ptr<server::Server>> servers_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<EmbeddedCluster>> EmbeddedCluster::Start(
    const EmbeddedClusterOptions& options) {
  auto cluster = std::make_unique<Cluster>(options);
  if (absl::Status s = cluster->Open(); !s.ok()) return s;
  return std::unique_ptr<EmbeddedCluster>(std::move(cluster));
}

}  // namespace strata

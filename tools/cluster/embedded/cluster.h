// Scheduler, servers and workers as objects of one process.
// Tested by tests/e2e/co_located_test.cc, tests/e2e/p3/embedded_test.cc
// Tested by tests/e2e/embedded_callers_test.cc
#ifndef STRATA_TOOLS_CLUSTER_EMBEDDED_CLUSTER_H_
#define STRATA_TOOLS_CLUSTER_EMBEDDED_CLUSTER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ops/cuda/api/api.h"
#include "proto/runtime/base/id_source.h"
#include "proto/runtime/files/path_policy.h"
#include "proto/runtime/transport/scheduler_client.h"
#include "proto/runtime/transport/transport.h"
#include "worker/data/reading/data_access.h"
#include "worker/device/worker_device.h"
#include "worker/worker.h"

namespace strata {

struct EmbeddedClusterOptions {
  uint32_t servers = 1;
  uint32_t workers = 1;
  // Folder for the servers; made where missing.
  std::string directory;
  DataAccess* data = DataAccess::Files();
  absl::Duration lease = absl::Seconds(10);
  // Where jobs may read and write.
  PathPolicy paths = {};
  // Draws the cluster's id and jobs' UIDs; outlives the cluster.
  IdSource* ids = IdSource::System();
  // The GPU of each worker, by index; null, or not there: none. They outlive the cluster.
  std::vector<const device::WorkerDevice*> devices = {};
  // That of the servers' GPU tiers, where a job's are not on host threads; outlives the cluster.
  ops::gpu::CudaApi* server_device = nullptr;
  // Of a row file's memtable; 0: as much as a server takes by default.
  uint64_t tier_memtable_bytes = 0;
  // How rows go between workers and servers that have one device.
  device::RowPath row_path = device::RowPath::kDevice;
  // Between servers and workers; outlives the cluster. Null: one of its own, inside the process.
  DataTransport* transport = nullptr;
};

// Servers and workers call each other under their own roles and names, and with the session
// credentials that the scheduler signs: who may make a call is asked here as between processes. Who
// has `scheduler()` is nobody, and may do everything.
//
// One thread at a time. A process's end can be played: Stop and Start of a server or worker lose
// everything that it held in memory, as kill -9 would.
class EmbeddedCluster {
 public:
  static absl::StatusOr<std::unique_ptr<EmbeddedCluster>> Start(
      const EmbeddedClusterOptions& options);
  virtual ~EmbeddedCluster() = default;

  virtual SchedulerClient& scheduler() = 0;
  // Null while stopped.
  virtual const Worker* worker(uint32_t index) const = 0;

  virtual void StopServer(uint32_t index) = 0;
  virtual absl::Status StartServer(uint32_t index) = 0;
  virtual void StopWorker(uint32_t index) = 0;
  virtual absl::Status StartWorker(uint32_t index) = 0;
};

}  // namespace strata

#endif  // STRATA_TOOLS_CLUSTER_EMBEDDED_CLUSTER_H_

// Servers of one job in this process, over the in-process transport, with their GPU tier on a
// device and all rows of the features' table there before the first step.
// Tested by tests/tools/gpu/dlrm/bar_test.cc
#ifndef STRATA_TOOLS_GPU_DLRM_SERVERS_H_
#define STRATA_TOOLS_GPU_DLRM_SERVERS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "ops/cuda/api/api.h"
#include "proto/core/ids.h"
#include "proto/runtime/transport/transport.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"

namespace strata::gpu_check {

struct DlrmServersOptions {
  ops::gpu::CudaApi* api = nullptr;  // outlives the servers
  TrainingJob job;                   // defaults resolved; spec.h
  DataShape shape;
  uint64_t rows = 0;  // keys 0 .. rows - 1 are there, with the weights that they are born with
  uint32_t servers = 1;
  uint32_t threads = 1;  // that run shards, of all servers together
};

// Since the servers began, over all of them.
struct DlrmCounters {
  uint64_t clock = 0;          // the smallest of any shard
  uint64_t rows = 0;           // of all tables
  uint64_t hbm_rows = 0;       // of them in HBM
  uint64_t hbm_evicted = 0;    // that left HBM for DRAM
  uint64_t refused_rows = 0;   // whose gradient was not finite
  uint64_t message_bytes = 0;  // of requests and replies; values that lie on a device are in none
};

// Start and the destructor on one thread; the other calls on any.
class DlrmServers {
 public:
  // Shards are filled side by side on all cores. Errors: of the job, RESOURCE_EXHAUSTED with
  // requested and free bytes, the device's.
  static absl::StatusOr<std::unique_ptr<DlrmServers>> Start(const DlrmServersOptions& options);
  virtual ~DlrmServers() = default;

  virtual DataTransport* transport() = 0;
  // Sets what a worker must know of the servers: job, generation, map epoch, shards, addresses.
  virtual void Describe(WorkerJobDirective* directive) const = 0;
  // The device by whose memory every server takes values, as its reply to OpenSession says; "":
  // they come and go in messages.
  virtual absl::StatusOr<std::string> OfferedDevice() = 0;
  virtual DlrmCounters counters() const = 0;
};

}  // namespace strata::gpu_check

#endif  // STRATA_TOOLS_GPU_DLRM_SERVERS_H_

// The rows of a checkpoint, served in this process: a server without a cluster.
// Tested by tests/e2e/predict_test.cc
#ifndef STRATA_TOOLS_CLUSTER_EMBEDDED_CHECKPOINT_SERVER_H_
#define STRATA_TOOLS_CLUSTER_EMBEDDED_CHECKPOINT_SERVER_H_

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/core/shard_map.h"
#include "tools/cluster/checkpoint/folder.h"
#include "worker/client/exchange.h"
#include "worker/client/parameter_client.h"

namespace strata {

struct CheckpointServerOptions {
  std::string directory;  // for what is kept while it lives: rows beyond the memory limit
  // Hard limit of rows and index in memory, as spec.storage.dramBytesPerServer; "0": none; empty:
  // that of the checkpoint's job.
  std::string dram_bytes;
  const std::atomic<bool>* cancelled = nullptr;  // may be null; outlives Start
};

// One thread at a time.
class CheckpointServer {
 public:
  // Loads the checkpoint: into memory up to the limit, the rest into the SSD tier of its job.
  // DATA_LOSS: damaged; the text names the file, and the newest whole checkpoint beside it.
  // FAILED_PRECONDITION: it is whole, and cannot be loaded, as where the limit is too small.
  // RESOURCE_EXHAUSTED: the disk or the memory is full.
  // CANCELLED: `cancelled` was set.
  static absl::StatusOr<std::unique_ptr<CheckpointServer>> Start(
      const FoundCheckpoint& found, const CheckpointServerOptions& options);
  virtual ~CheckpointServer() = default;

  virtual const ShardMap& map() const = 0;
  // A way to the rows. `exchange`, of this map, outlives it.
  virtual std::unique_ptr<ParameterClient> MakeClient(const Exchange* exchange) = 0;
  // What keeps the server from its work, as a full disk does; else `error`.
  virtual absl::Status Explain(const absl::Status& error) = 0;
};

}  // namespace strata

#endif  // STRATA_TOOLS_CLUSTER_EMBEDDED_CHECKPOINT_SERVER_H_

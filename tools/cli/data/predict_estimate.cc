#include "tools/cli/data/predict_estimate.h"

#include <algorithm>
#include <cstdint>

#include "tools/cluster/embedded/predict.h"

namespace strata {
namespace {

// The program without a model: code, libraries, its server's threads. Measured on Debian 12.
constexpr uint64_t kPredictBytes = uint64_t{30} << 20;

}  // namespace

std::vector<MemoryPart> EstimatePredict(const JobSpec& spec, const server::ServerLoad& server,
                                        const WorkerLoad& worker) {
  // One server that only reads, in one process with who scores (checkpoint_server.h).
  server::ServerLoad rows = server;
  rows.shards_here = server.dram_bytes == 0 ? 2 * std::max(1u, server.threads)
                     : spec.storage().has_shards_per_server() ? spec.storage().shards_per_server()
                                                              : 4;
  rows.servers = rows.workers = 1;
  rows.hbm_bytes = 0;
  rows.rows_there = rows.logged = rows.removed_stream = rows.synchronous = false;
  WorkerLoad scoring = worker;
  scoring.device = WorkerLoad::Device::kCpu;
  scoring.lines = worker.lines * std::max(1u, spec.replicas().workers());
  const uint64_t measured =
      std::min(scoring.lines, kMostMeasured / std::max(1u, worker.tables.task_count()));
  std::vector<MemoryPart> parts = server::EstimateServer(rows);
  for (MemoryPart& part : EstimateScoring(scoring, measured)) parts.push_back(std::move(part));
  parts.push_back({"the process itself", kPredictBytes, "measured without a model"});
  return parts;
}

}  // namespace strata

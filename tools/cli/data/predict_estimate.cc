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
  rows.shards_here = server.dram_bytes == 0                   ? 2 * std::max(1u, server.threads)
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
  // It asks for the keys of all lines that are scored at a time.
  rows.keys_per_push = MostScored(scoring, scoring.lines).keys;
  for (server::TableKeys& table : rows.of_table) {
    const double of_all = static_cast<double>(table.per_push) /
                          static_cast<double>(std::max<uint64_t>(1, server.keys_per_push));
    table.per_push = std::min(
        table.rows, static_cast<uint64_t>(of_all * static_cast<double>(rows.keys_per_push)));
  }
  std::vector<MemoryPart> parts = server::EstimateServer(rows);
  for (MemoryPart& part : EstimateScoring(scoring, measured)) parts.push_back(std::move(part));
  parts.push_back({"the process itself", kPredictBytes, "measured without a model"});
  return parts;
}

}  // namespace strata

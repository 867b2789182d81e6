// Reads, hashes and routes the lanes' batches ahead of the step that needs them.
#ifndef STRATA_WORKER_BSP_LANE_PREPARER_H_
#define STRATA_WORKER_BSP_LANE_PREPARER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "proto/core/ids.h"
#include "proto/job/tables/model_tables.h"
#include "worker/data/reading/batch_source.h"
#include "worker/metrics/stage_times.h"
#include "worker/step/batch.h"

namespace strata {

// One lane's batch of one step, ready to pull.
struct PreparedLane {
  Batch batch;
  RoutedKeys routed;
};

// How many threads a job's batches are worth, of so many that there are: routing takes about as
// long as a GPU's step, where batches are large.
constexpr uint32_t PreparingThreads(uint32_t batch_size, uint32_t depth, uint32_t threads) {
  constexpr uint32_t kExamplesOfThread = 8192;
  return std::max(1u, std::min({batch_size / kExamplesOfThread, depth, threads}));
}

// Get may be called from one thread; the preparing runs on threads of its own. What Get returns
// depends on (step, lane) alone, whatever the depth.
class LanePreparer {
 public:
  struct Options {
    BatchSource* source = nullptr;  // outlives the preparer
    ModelTables tables;
    Step last_step;
    // Steps prepared ahead per lane, >= 1. Memory: (depth + 1) x lanes x the bytes of a batch.
    uint32_t depth = 4;
    uint32_t threads = 1;
    StageTimes* times = nullptr;  // outlives the preparer; its reading and routing, unless null
  };
  static std::unique_ptr<LanePreparer> Make(const Options& options);
  virtual ~LanePreparer() = default;

  // The lane's batch at `step` (1 .. last_step), waiting until it is ready. Errors are the
  // source's.
  virtual absl::StatusOr<std::shared_ptr<const PreparedLane>> Get(Step step, uint32_t lane) = 0;
  // Whether Get would not wait. Starts nothing.
  virtual bool Ready(Step step, uint32_t lane) = 0;
  // Forgets what was prepared for a lane that is no longer hosted.
  virtual void Forget(uint32_t lane) = 0;
};

}  // namespace strata

#endif  // STRATA_WORKER_BSP_LANE_PREPARER_H_

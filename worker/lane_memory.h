// What the lanes of an asynchronous mode keep of weights, by formula: part of memory_estimate.h.
// Tested by tests/tools/cli/data/estimate_test.cc
// Tested by tests/worker/async/replica_memory_test.cc
#ifndef STRATA_WORKER_LANE_MEMORY_H_
#define STRATA_WORKER_LANE_MEMORY_H_

#include <cstdint>
#include <vector>

#include "proto/core/memory_part.h"
#include "proto/core/table_spec.h"

namespace strata {

struct LaneLoad {
  uint32_t lanes = 1;  // here
  // Distinct keys: of a batch, and of the batches of a pull.
  uint64_t keys_per_batch = 0;
  uint64_t keys_per_pull = 0;
  // That a lane steps on over the whole job.
  uint64_t keys_of_lane = 0;
  uint64_t row_bytes = 0;    // of a key's weights
  uint64_t dense_bytes = 0;  // of the dense part's
  // The tables with the optimizers of a lane's own steps; empty: it has none.
  std::vector<TableSpec> local_tables;
  bool elastic = false;  // easgd: the lane's copy lives on over pulls
};

// Weights as they were pulled, gradients, and with local steps (worker/async/replica.h):
//   copies  batch rows; easgd: rows and those that were touched since the exchange before, what is
//           exchanged, and the dense part twice
//   state   easgd: of every row that the lane ever stepped on, in memory that doubles, and where
//           each is; and of the dense part (of downpour too, whose steps have none)
std::vector<MemoryPart> EstimateLanes(const LaneLoad& load);

}  // namespace strata

#endif  // STRATA_WORKER_LANE_MEMORY_H_

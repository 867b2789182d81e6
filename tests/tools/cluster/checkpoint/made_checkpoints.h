// Checkpoints of a small job, as two servers write them while it trains.
#ifndef STRATA_TESTS_TOOLS_CLUSTER_CHECKPOINT_MADE_CHECKPOINTS_H_
#define STRATA_TESTS_TOOLS_CLUSTER_CHECKPOINT_MADE_CHECKPOINTS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "proto/strata/job.pb.h"

namespace strata::testing {

// Trains on in `folder` while `checkpoints` are asked for, one after the other, and returns their
// folders. `change`: of the job, before it is submitted.
std::vector<std::string> MakeCheckpoints(const std::string& folder, uint32_t full_every,
                                         int checkpoints, const std::string& mode = "bsp",
                                         const std::function<void(JobSpec&)>& change = nullptr);

}  // namespace strata::testing

#endif  // STRATA_TESTS_TOOLS_CLUSTER_CHECKPOINT_MADE_CHECKPOINTS_H_

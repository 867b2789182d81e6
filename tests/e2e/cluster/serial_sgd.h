// What one lane that awaits every call must give: SGD, batch after batch, on arrays, with the
// copies of downpour and easgd as ALGORITHMS.md section 2 says them.
#ifndef STRATA_TESTS_E2E_CLUSTER_SERIAL_SGD_H_
#define STRATA_TESTS_E2E_CLUSTER_SERIAL_SGD_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "proto/strata/job.pb.h"

namespace strata::testing {

// Weights by (table, position); rows that nothing has touched are not there.
using Weights = std::map<std::pair<uint32_t, uint64_t>, std::vector<float>>;

// Trains the job's model in its mode, downpour or easgd, by w = w - rate * (gradient sum /
// examples), one operation an element, on the batches of tasks 0, 1, ... in order. `job` has its
// defaults resolved, with sgd of one rate. The weights are the centre's.
Weights SerialSgd(const TrainingJob& job);

// The weights of a checkpoint's rows.
Weights CheckpointWeights(const std::string& folder);

}  // namespace strata::testing

#endif  // STRATA_TESTS_E2E_CLUSTER_SERIAL_SGD_H_

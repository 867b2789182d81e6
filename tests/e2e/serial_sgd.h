// What one lane that awaits every call must give: plain SGD, batch after batch, on arrays.
#ifndef STRATA_TESTS_E2E_SERIAL_SGD_H_
#define STRATA_TESTS_E2E_SERIAL_SGD_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "proto/strata/job.pb.h"

namespace strata::testing {

// Weights by (table, position); rows that nothing has touched are not there.
using Weights = std::map<std::pair<uint32_t, uint64_t>, std::vector<float>>;

// Trains the job's model by w = w - rate * (gradient sum / examples), one operation an element, on
// the windows of tasks 0, 1, ... in order. `job` has its defaults resolved, with sgd of one rate.
Weights SerialSgd(const TrainingJob& job);

// The weights of a checkpoint's rows.
Weights CheckpointWeights(const std::string& folder);

}  // namespace strata::testing

#endif  // STRATA_TESTS_E2E_SERIAL_SGD_H_

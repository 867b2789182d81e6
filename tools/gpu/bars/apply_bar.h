// Optimizers applied to rows of a large table in random order.
// Tested by tests/tools/gpu/bars/bars_test.cc
#ifndef STRATA_TOOLS_GPU_BARS_APPLY_BAR_H_
#define STRATA_TOOLS_GPU_BARS_APPLY_BAR_H_

#include "absl/status/status.h"
#include "tools/gpu/bars/bar.h"

namespace strata::gpu_check {

// Lines for sgd, adagrad, rowwise_adagrad, adam and ftrl: at least 75 % of the copy's bytes per
// second where weights and state have 256 bytes or more, 55 % where they have less. Counted are the
// row numbers and sums that are read, and the weights and state that are read and written; not what
// fills up a row. A refused row is an error. Waits.
absl::Status ApplyBar(const BarContext& context);

}  // namespace strata::gpu_check

#endif  // STRATA_TOOLS_GPU_BARS_APPLY_BAR_H_

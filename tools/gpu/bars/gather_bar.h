// Gather and pool: rows of a large table, read in random order, into bags.
// Tested by tests/tools/gpu/bars/bars_test.cc
#ifndef STRATA_TOOLS_GPU_BARS_GATHER_BAR_H_
#define STRATA_TOOLS_GPU_BARS_GATHER_BAR_H_

#include "absl/status/status.h"
#include "tools/gpu/bars/bar.h"

namespace strata::gpu_check {

// Lines for rows of 256, 128 and 64 bytes, one and four a bag: at least 80, 70 and 55 % of the
// copy's bytes per second and 95 % of the probe's. Counted are the rows and row numbers that are
// read and the bags that are written. Waits.
absl::Status GatherBar(const BarContext& context);

}  // namespace strata::gpu_check

#endif  // STRATA_TOOLS_GPU_BARS_GATHER_BAR_H_

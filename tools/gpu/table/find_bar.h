// The bar "find": rows of a GPU table looked up by positions that are on the device already.
// Tested by tests/tools/gpu/bars/bars_test.cc
#ifndef STRATA_TOOLS_GPU_TABLE_FIND_BAR_H_
#define STRATA_TOOLS_GPU_TABLE_FIND_BAR_H_

#include "absl/status/status.h"
#include "tools/gpu/bars/bar.h"

namespace strata::gpu_check {

// Rows of 8 and of 64 floats, in a table whose slots are taken by half and then all; all positions
// are found, in random order, and their rows moved. Calls look for other positions than the last
// one did, where these alone would stay in the last-level cache (KeySets of memory.h). Waits.
// kInternal: a slot or a row is wrong.
absl::Status FindBar(const BarContext& context);

}  // namespace strata::gpu_check

#endif  // STRATA_TOOLS_GPU_TABLE_FIND_BAR_H_

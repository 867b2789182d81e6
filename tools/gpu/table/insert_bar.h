// The bar "find-or-insert": rows that a full GPU table does not have push out others.
// Tested by tests/tools/gpu/bars/bars_test.cc
#ifndef STRATA_TOOLS_GPU_TABLE_INSERT_BAR_H_
#define STRATA_TOOLS_GPU_TABLE_INSERT_BAR_H_

#include "absl/status/status.h"
#include "tools/gpu/bars/bar.h"

namespace strata::gpu_check {

// Rows of 64 floats; every slot is taken by a dirty row, no key is there, and each row that leaves
// is copied to its staging place. By lru, by lrfu, and by lru with the bytes of the rows that come
// as well. Waits. kInternal: a row was not pushed out, or its bytes are wrong.
absl::Status FindOrInsertBar(const BarContext& context);

}  // namespace strata::gpu_check

#endif  // STRATA_TOOLS_GPU_TABLE_INSERT_BAR_H_

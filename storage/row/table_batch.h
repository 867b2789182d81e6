// What every table checks of the positions that a call names.
// Tested by tests/storage/dram/table_test.cc
#ifndef STRATA_STORAGE_ROW_TABLE_BATCH_H_
#define STRATA_STORAGE_ROW_TABLE_BATCH_H_

#include <cstddef>
#include <span>

#include "absl/status/status.h"
#include "proto/core/ids.h"

namespace strata::storage {

// INVALID_ARGUMENT unless positions strictly ascend, lie in [first, last], and are at most `most`.
absl::Status CheckBatch(std::span<const Position> positions, Position first, Position last,
                        size_t most);

}  // namespace strata::storage

#endif  // STRATA_STORAGE_ROW_TABLE_BATCH_H_

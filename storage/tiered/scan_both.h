// Rows of the DRAM tier and of the tier below in one order.
// Tested by tests/storage/tiered/table_test.cc
#ifndef STRATA_STORAGE_TIERED_SCAN_BOTH_H_
#define STRATA_STORAGE_TIERED_SCAN_BOTH_H_

#include <cstddef>

#include "absl/status/status.h"
#include "storage/dram/store.h"
#include "storage/row/table.h"
#include "storage/tier/row_tier.h"

namespace strata::storage {

// A merge by position; where both have a row, DRAM's is the newer. Returns the first error, of the
// visitor or of the cursor. REQUIRES: both begin and end at the same positions.
absl::Status ScanBoth(const RowStore& rows, RowStore::Cursor& dram, TierCursor& below,
                      size_t row_bytes, const RowTable::Visitor& visit);

}  // namespace strata::storage

#endif  // STRATA_STORAGE_TIERED_SCAN_BOTH_H_

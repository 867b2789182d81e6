// Rows of the DRAM tier and of the tier below in one order.
#ifndef STRATA_STORAGE_SCAN_BOTH_H_
#define STRATA_STORAGE_SCAN_BOTH_H_

#include <cstddef>

#include "absl/status/status.h"
#include "storage/row_store.h"
#include "storage/row_table.h"
#include "storage/row_tier.h"

namespace strata::storage {

// A merge by position; where both have a row, DRAM's is the newer. Returns the first error, of the
// visitor or of the cursor. REQUIRES: both begin and end at the same positions.
absl::Status ScanBoth(const RowStore& rows, RowStore::Cursor& dram, TierCursor& below,
                      size_t row_bytes, const RowTable::Visitor& visit);

}  // namespace strata::storage

#endif  // STRATA_STORAGE_SCAN_BOTH_H_

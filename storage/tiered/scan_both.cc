#include "storage/tiered/scan_both.h"

namespace strata::storage {

absl::Status ScanBoth(const RowStore& rows, RowStore::Cursor& dram, TierCursor& below,
                      size_t row_bytes, const RowTable::Visitor& visit) {
  while (dram.Valid() || below.Valid()) {
    const bool from_dram = dram.Valid() && (!below.Valid() || dram.position() <= below.position());
    absl::Status s;
    if (from_dram) {
      const bool both = below.Valid() && below.position() == dram.position();
      s = visit(dram.position(), {rows.RowAt(dram.slot()), row_bytes});
      if (both) below.Next();
      dram.Next();
    } else {
      s = visit(below.position(), below.row());
      below.Next();
    }
    if (!s.ok()) return s;
    if (!below.Valid() && !below.status().ok()) return below.status();
  }
  return below.status();
}

}  // namespace strata::storage

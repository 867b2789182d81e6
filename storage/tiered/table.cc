#include "storage/tiered/table.h"

#include <utility>

#include "absl/status/status.h"
#include "storage/dram/table.h"
#include "storage/tiered/rows.h"

namespace strata::storage {

absl::StatusOr<std::unique_ptr<RowTable>> MakeTieredTable(const TieredOptions& options) {
  if (absl::Status s = CheckTieredOptions(options); !s.ok()) return s;
  if (options.dram_limit_bytes == 0) {
    return MakeDramTable({.row_bytes = options.row_bytes,
                          .first = options.first,
                          .last = options.last,
                          .spread = options.spread});
  }
  auto table = std::make_unique<TieredTable>(options);
  if (options.below_content == BelowContent::kAdopt) {
    if (absl::Status s = table->Adopt(); !s.ok()) return s;
  }
  return table;
}

}  // namespace strata::storage

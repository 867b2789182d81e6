#include "storage/row_file/memory.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "storage/row_file/version.h"
#include "storage/tier/row_tier.h"

namespace strata::storage {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

}  // namespace

std::vector<MemoryPart> RowFileTierMemory(const RowFileTierOptions& options, const TierLoad& load) {
  const auto rows = static_cast<double>(load.rows);
  // An entry of the index is 8 bytes a block, of which four fifths and more of 4 KiB are rows.
  const double index = 8.0 / std::max(1.0, 4096.0 * 4 / 5 / static_cast<double>(load.row_bytes));
  const double base = index + options.base_filter_bits / 8.0;
  const double deltas = row_file::kDeltaShare * (index + options.delta_filter_bits / 8.0);
  const uint64_t reader = kMiB + RowTier::ReadRowsAtOnce(load.row_bytes) * load.row_bytes;
  return {TierBuffer("SSD tier: memtables",
                     2 * (options.memtable_bytes * 5 / 4 + RowTier::kWriteChunkBytes), load),
          {"SSD tier: index and filters", static_cast<uint64_t>(rows * (base + deltas)),
           absl::StrCat(load.rows, " rows below x (index ", index, " + filter ",
                        options.base_filter_bits, " bits, and ", row_file::kDeltaShare,
                        " of them once more)")},
          TierBuffer("SSD tier: reads and a merge", load.threads * reader + 16 * kMiB, load)};
}

}  // namespace strata::storage

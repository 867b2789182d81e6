#include "storage/tiered/options.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace strata::storage {

RowStoreOptions TieredStoreOptions(const TieredOptions& options) {
  return {.row_bytes = options.row_bytes,
          .first = options.first,
          .last = options.last,
          .spread = options.spread,
          .limit_bytes = options.dram_limit_bytes,
          .extra_bytes = kFlagBytesPerSlot + EvictionBytesPerSlot(options.eviction)};
}

uint64_t MinimumDramBytes(size_t row_bytes) {
  TieredOptions options;
  options.row_bytes = row_bytes;
  uint64_t least = 0;
  for (const EvictionKind kind : {EvictionKind::kLru, EvictionKind::kLfu, EvictionKind::kLrfu}) {
    options.eviction = kind;
    least = std::max(least, RowStore::BytesFor(TieredStoreOptions(options), kMinimumRows));
  }
  return least + RowStore::kPageSlack;
}

absl::Status CheckTieredOptions(const TieredOptions& options) {
  if (options.row_bytes < 8 || options.row_bytes % 4 != 0) {
    return absl::InvalidArgumentError(absl::StrCat("row_bytes is ", options.row_bytes,
                                                   "; it must be a multiple of 4, at least 8"));
  }
  if (options.last < options.first) {
    return absl::InvalidArgumentError(absl::StrCat("the range of positions ends at ",
                                                   options.last.value, ", before its start ",
                                                   options.first.value));
  }
  if (options.dram_limit_bytes == 0) return absl::OkStatus();
  const uint64_t least = MinimumDramBytes(options.row_bytes);
  if (options.dram_limit_bytes < least) {
    return absl::InvalidArgumentError(
        absl::StrCat("a DRAM limit of ", options.dram_limit_bytes,
                     " bytes for a table of one shard; rows of ", options.row_bytes,
                     " bytes need at least ", least, ": raise spec.storage.dramBytesPerServer"));
  }
  if (options.below == nullptr) {
    return absl::InvalidArgumentError("a DRAM limit needs a tier below");
  }
  return absl::OkStatus();
}

}  // namespace strata::storage

// A table whose rows lie in DRAM up to a hard limit, and on SSD beyond it.
//
// Resolve: rows found in DRAM are used there; the others are read from below in batches and moved
// up; rows that exist nowhere are born or answered null as Access says. When DRAM is full, unpinned
// rows leave: dirty ones are written below in one batch sorted by position, clean ones are dropped.
// A failed write below drops nothing: the call returns the error, every row stays where it was, and
// the call may be repeated.
//
// Bytes: CapacityFor(limit) rows fit (row_store.h's formula, extra_bytes = 1 +
// EvictionBytesPerSlot). max_batch() = capacity / 2 and Pin holds at most capacity / 2 rows (each
// 31 times at most), so that there is always room for a batch. Least limit admitted:
// MinimumDramBytes, which is that of kMinimumRows rows. Beside the limit a call needs lists of at
// most max(capacity / 2, 65536) * 28 bytes, 256 KiB (or 16 rows) of rows just read, and the tier's
// own buffers (rocks_tier.h).
#ifndef STRATA_STORAGE_TIERED_TABLE_H_
#define STRATA_STORAGE_TIERED_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "proto/core/ids.h"
#include "storage/eviction_policy.h"
#include "storage/row_store.h"
#include "storage/row_table.h"
#include "storage/row_tier.h"

namespace strata::storage {

inline constexpr uint64_t kMinimumRows = 16;

enum class BelowContent : uint8_t {
  kEmpty,  // the tier holds no row of this table in the range: after OpenMode::kFresh
  kAdopt,  // rows found there are the table's; counted by one scan
};

struct TieredOptions {
  TableId table;
  size_t row_bytes = 0;  // RowLayout::row_bytes()
  // The shard's range of positions, both inclusive.
  Position first{0};
  Position last{~0ull};
  Spread spread = Spread::kUniform;
  // Hard limit on rows, index and per-slot bytes in DRAM; 0 = none: then `below` is not used and
  // may be null, and the table is a DRAM table (dram_table.h).
  uint64_t dram_limit_bytes = 0;
  RowTier* below = nullptr;  // outlives the table
  BelowContent below_content = BelowContent::kEmpty;
  EvictionKind eviction = EvictionKind::kClock;
};

// The least dram_limit_bytes of a table with rows of row_bytes.
uint64_t MinimumDramBytes(size_t row_bytes);

// INVALID_ARGUMENT names the option, its value and its limit; errors of the tier with kAdopt.
absl::StatusOr<std::unique_ptr<RowTable>> MakeTieredTable(const TieredOptions& options);

}  // namespace strata::storage

#endif  // STRATA_STORAGE_TIERED_TABLE_H_

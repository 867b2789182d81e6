// What a tiered table is made of, and the least memory that it needs.
// Tested by tests/storage/tiered/conformance_test.cc
// Tested by tests/storage/memory_limit_test.cc
#ifndef STRATA_STORAGE_TIERED_OPTIONS_H_
#define STRATA_STORAGE_TIERED_OPTIONS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "proto/core/ids.h"
#include "storage/dram/store.h"
#include "storage/eviction/kind.h"
#include "storage/tier/row_tier.h"

namespace strata::storage {

inline constexpr uint64_t kMinimumRows = 16;
// Rows that wait in line to leave, at most.
inline constexpr size_t kMostVictims = size_t{1} << 14;

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
  // may be null, and the table is a DRAM table (storage/dram/table.h).
  uint64_t dram_limit_bytes = 0;
  RowTier* below = nullptr;  // outlives the table
  BelowContent below_content = BelowContent::kEmpty;
  EvictionKind eviction = EvictionKind::kLrfu;
};

// Flags of a slot, counted in the limit beside the policy's bytes.
inline constexpr size_t kFlagBytesPerSlot = 2;

// The DRAM tier's rows and index.
RowStoreOptions TieredStoreOptions(const TieredOptions& options);

// The least dram_limit_bytes of a table with rows of row_bytes, whatever its eviction policy.
uint64_t MinimumDramBytes(size_t row_bytes);

// INVALID_ARGUMENT names the option, its value and its limit.
absl::Status CheckTieredOptions(const TieredOptions& options);

}  // namespace strata::storage

#endif  // STRATA_STORAGE_TIERED_OPTIONS_H_

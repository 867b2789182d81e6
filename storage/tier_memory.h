// How much memory a tier below the rows in DRAM takes, by formula (`strata estimate`).
#ifndef STRATA_STORAGE_TIER_MEMORY_H_
#define STRATA_STORAGE_TIER_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "proto/core/memory_part.h"
#include "storage/rocks_tier.h"
#include "storage/row_file_tier.h"

namespace strata::storage {

struct TierLoad {
  uint64_t rows = 0;  // below
  size_t row_bytes = 0;
  uint32_t threads = 1;  // that read and write at once
};

// Resident bytes by part, once every buffer has been full and a merge under way. Of a tier that
// holds less than its buffers, what it holds.
std::vector<MemoryPart> RocksTierMemory(const RocksTierOptions& options, const TierLoad& load);
std::vector<MemoryPart> RowFileTierMemory(const RowFileTierOptions& options, const TierLoad& load);

}  // namespace strata::storage

#endif  // STRATA_STORAGE_TIER_MEMORY_H_

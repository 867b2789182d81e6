// How much memory a tier on RocksDB takes, by formula (`strata estimate`).
// Tested by tests/tools/cli/data/estimate_memory_test.cc
#ifndef STRATA_STORAGE_ROCKS_MEMORY_H_
#define STRATA_STORAGE_ROCKS_MEMORY_H_

#include <vector>

#include "proto/core/memory_part.h"
#include "storage/rocks/tier.h"
#include "storage/tier/load.h"

namespace strata::storage {

// Resident bytes by part, once every buffer has been full and files are being written. Of a tier
// that holds less than its buffers, what it holds.
std::vector<MemoryPart> RocksTierMemory(const RocksTierOptions& options, const TierLoad& load);

}  // namespace strata::storage

#endif  // STRATA_STORAGE_ROCKS_MEMORY_H_

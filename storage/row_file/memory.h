// How much memory a row file takes, by formula (`strata estimate`).
// Tested by tests/tools/cli/data/estimate_memory_test.cc
#ifndef STRATA_STORAGE_ROW_FILE_MEMORY_H_
#define STRATA_STORAGE_ROW_FILE_MEMORY_H_

#include <vector>

#include "proto/core/memory_part.h"
#include "storage/row_file/tier.h"
#include "storage/tier/load.h"

namespace strata::storage {

// Resident bytes by part, once every buffer has been full and a merge under way. Of a tier that
// holds less than its buffers, what it holds.
std::vector<MemoryPart> RowFileTierMemory(const RowFileTierOptions& options, const TierLoad& load);

}  // namespace strata::storage

#endif  // STRATA_STORAGE_ROW_FILE_MEMORY_H_

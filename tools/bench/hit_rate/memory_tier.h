// A tier below in memory, for measurements in which the disk has no part.
#ifndef STRATA_TOOLS_BENCH_HIT_RATE_MEMORY_TIER_H_
#define STRATA_TOOLS_BENCH_HIT_RATE_MEMORY_TIER_H_

#include <memory>

#include "storage/tier/row_tier.h"

namespace strata::bench {

// Not thread-safe. Its cursors see nothing of what is written after they were made. Sync does
// nothing.
std::unique_ptr<storage::RowTier> MakeMemoryTier();

}  // namespace strata::bench

#endif  // STRATA_TOOLS_BENCH_HIT_RATE_MEMORY_TIER_H_

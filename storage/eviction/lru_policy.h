// Least recently used: the rows that were referenced longest ago leave first.
#ifndef STRATA_STORAGE_EVICTION_LRU_POLICY_H_
#define STRATA_STORAGE_EVICTION_LRU_POLICY_H_

#include <cstddef>
#include <memory>

#include "storage/eviction/policy.h"
#include "storage/eviction/slot_scores.h"

namespace strata::storage {

// A slot's score is the time of its last reference. Time passes by one for every capacity / 256
// references, so the order is that of LRU to within a 256th of the tier.
inline constexpr size_t kLruBytesPerSlot = SlotScores::kBytesPerSlot;

std::unique_ptr<EvictionPolicy> MakeLruPolicy(size_t capacity);

}  // namespace strata::storage

#endif  // STRATA_STORAGE_EVICTION_LRU_POLICY_H_

// Least frequently used: the rows with the fewest references since they came leave first.
#ifndef STRATA_STORAGE_EVICTION_LFU_POLICY_H_
#define STRATA_STORAGE_EVICTION_LFU_POLICY_H_

#include <cstddef>
#include <memory>

#include "storage/eviction/policy.h"
#include "storage/eviction/slot_scores.h"

namespace strata::storage {

// A slot's score counts references; when one reaches 65535, all are halved. What was referenced
// often long ago stays: for data whose popular keys change, see lrfu_policy.h.
inline constexpr size_t kLfuBytesPerSlot = SlotScores::kBytesPerSlot;

std::unique_ptr<EvictionPolicy> MakeLfuPolicy(size_t capacity);

}  // namespace strata::storage

#endif  // STRATA_STORAGE_EVICTION_LFU_POLICY_H_

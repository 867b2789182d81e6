// LRFU with a memory: rows leave by how often they were referenced, where a reference counts half
// after every kLrfuHalfLife times the tier's rows references (lrfu_score.h). Resistant to scans: a
// row that was seen once never displaces one that was seen twice of late.
//
// D. Lee et al., LRFU: a spectrum of policies that subsumes the least recently used and least
// frequently used policies, IEEE Transactions on Computers 50 (2001), with F(x) = (1/2)^(lambda x).
// The value is kept as its logarithm in forward time (G. Cormode et al., Forward decay, ICDE 2009),
// so that nothing has to be touched as it decays. Rows that left keep their value for a while as
// ghosts (as in ARC, N. Megiddo and D. Modha, FAST 2003): one that comes back goes on from there.
#ifndef STRATA_STORAGE_EVICTION_LRFU_POLICY_H_
#define STRATA_STORAGE_EVICTION_LRFU_POLICY_H_

#include <cstddef>
#include <memory>

#include "storage/eviction/policy.h"
#include "storage/eviction/slot_scores.h"

namespace strata::storage {

// The score, and a ghost for every slot: a fingerprint of 16 bits and a score.
inline constexpr size_t kLrfuBytesPerSlot = SlotScores::kBytesPerSlot + 4;

std::unique_ptr<EvictionPolicy> MakeLrfuPolicy(size_t capacity);

}  // namespace strata::storage

#endif  // STRATA_STORAGE_EVICTION_LRFU_POLICY_H_

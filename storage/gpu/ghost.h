// What a bucket of a GPU table remembers of rows that left it (storage/eviction/lrfu_policy.h): one
// ghost for every slot, in sets of kGhostWays. The bucket's owner alone touches them.
// Tested by tests/storage/gpu/bucket_test.cc
#ifndef STRATA_STORAGE_GPU_GHOST_H_
#define STRATA_STORAGE_GPU_GHOST_H_

#include <cstddef>
#include <cstdint>

#include "ops/inline.h"
#include "storage/gpu/slots.h"

namespace strata::storage::gpu {

inline constexpr int kGhostWays = 8;
STRATA_HD uint32_t GhostHash(uint64_t position) {
  return static_cast<uint32_t>((position * 0xd1342543de82ef95ull) >> 32);
}
template <int kSlots>
STRATA_HD GpuGhost* GhostsOf(const GpuSlots& t, uint32_t bucket, uint32_t hash) {
  return t.ghosts + size_t{bucket} * kSlots + hash % (kSlots / kGhostWays) * kGhostWays;
}

// Remembers a row that leaves; in a full set the lowest score gives way.
template <int kSlots>
STRATA_HD void AddGhost(const GpuSlots& t, uint32_t bucket, uint64_t position, uint16_t score) {
  if (t.ghosts == nullptr) return;
  const uint32_t hash = GhostHash(position);
  GpuGhost* const set = GhostsOf<kSlots>(t, bucket, hash);
  int lowest = 0;
  for (int i = 1; i < kGhostWays; ++i) {
    if (set[i].score < set[lowest].score) lowest = i;
  }
  if (set[lowest].score > score) return;
  set[lowest].fingerprint = static_cast<uint16_t>(hash >> 16);
  set[lowest].score = score;
}

// The score of a row that comes back, forgotten here; 0: not known.
template <int kSlots>
STRATA_HD uint16_t TakeGhost(const GpuSlots& t, uint32_t bucket, uint64_t position) {
  if (t.ghosts == nullptr) return 0;
  const uint32_t hash = GhostHash(position);
  GpuGhost* const set = GhostsOf<kSlots>(t, bucket, hash);
  for (int i = 0; i < kGhostWays; ++i) {
    if (set[i].score == 0 || set[i].fingerprint != static_cast<uint16_t>(hash >> 16)) continue;
    const uint16_t score = set[i].score;
    set[i].score = 0;
    return score;
  }
  return 0;
}

}  // namespace strata::storage::gpu

#endif  // STRATA_STORAGE_GPU_GHOST_H_

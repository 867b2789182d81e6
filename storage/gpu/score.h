// The eviction policies (storage/eviction/kind.h) as arithmetic on one slot of a GPU table: plain
// memory, host or device. All references of one batch happen at one moment, `now`, which clock.h
// gives; so that what a slot's score becomes does not depend on the order in which slots are
// touched.
// Tested by tests/storage/gpu/bucket_test.cc
// Tested by tests/storage/gpu/clock_test.cc
#ifndef STRATA_STORAGE_GPU_SCORE_H_
#define STRATA_STORAGE_GPU_SCORE_H_

#include <cstdint>

#include "ops/inline.h"
#include "storage/eviction/kind.h"
#include "storage/eviction/lrfu_score.h"

namespace strata::storage::gpu {

// Trivially copyable, non-owning.
struct GpuScoring {
  EvictionKind kind = EvictionKind::kLrfu;
  uint16_t now = 1;
  const uint16_t* gains = nullptr;  // (kLrfuFar): LrfuGainTable, in memory of the side that scores
};

// The score of a row that was referenced. Lfu: at most one reference a batch, and GpuClock halves
// scores before one could pass 65535.
STRATA_HD uint16_t TouchedScore(const GpuScoring& s, uint16_t score) {
  switch (s.kind) {
    case EvictionKind::kLru:
      return s.now;
    case EvictionKind::kLfu:
      return static_cast<uint16_t>(score + 1);
    case EvictionKind::kLrfu:
      return LrfuSum(score, s.now, s.gains);
  }
  return s.now;
}

// The score of a row that came. ghost: its score when it left, where that is known; else 0.
STRATA_HD uint16_t FirstScore(const GpuScoring& s, uint16_t ghost) {
  if (s.kind == EvictionKind::kLfu) return 1;
  return s.kind == EvictionKind::kLrfu && ghost != 0 ? LrfuSum(ghost, s.now, s.gains) : s.now;
}

// How all scores age, as clock.h says: score - lower, then halved if so said. Rows keep at
// least `least` (1; ghosts 0). A score of 0 stays: there is no row.
struct GpuAging {
  uint16_t lower = 0;
  bool halve = false;
  explicit operator bool() const { return lower != 0 || halve; }
};
STRATA_HD uint16_t AgedScore(const GpuAging& aging, uint16_t score, uint16_t least) {
  if (score == 0) return 0;
  const uint16_t lowered = static_cast<uint16_t>(score > aging.lower ? score - aging.lower : 0);
  const uint16_t aged = static_cast<uint16_t>(aging.halve ? lowered / 2 : lowered);
  return aged < least ? least : aged;
}

}  // namespace strata::storage::gpu

#endif  // STRATA_STORAGE_GPU_SCORE_H_

// A score of 16 bits for every slot of a tier, and the slots with the lowest: what the eviction
// policies have in common.
#ifndef STRATA_STORAGE_EVICTION_SLOT_SCORES_H_
#define STRATA_STORAGE_EVICTION_SLOT_SCORES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "storage/eviction/policy.h"

namespace strata::storage {

// Not thread-safe. An update of a score is one store: there are no lists to keep. Choose looks
// through the scores instead, of a region of kRegion .. 2 kRegion slots at a time, which are a
// random sample of the rows: victims of a sixteenth of a region cost 16 reads of two bytes each.
class SlotScores {
 public:
  using Score = uint16_t;
  static constexpr Score kMost = 0xffff;
  static constexpr size_t kBytesPerSlot = sizeof(Score);
  static constexpr size_t kRegion = size_t{1} << 18;
  static constexpr size_t kMostCandidates = 2 * kRegion;

  explicit SlotScores(size_t capacity) : scores_(capacity, 0) {}

  // 0: the slot holds no row.
  Score at(uint32_t slot) const { return scores_[slot]; }
  void Set(uint32_t slot, Score score) { scores_[slot] = score; }

  // Every row's score becomes score - by, at least 1.
  void Lower(Score by);
  // Every row's score becomes half of it, at least 1.
  void Halve();

  // As EvictionPolicy::Choose, by rising score; equal ones in the order of slots from where the
  // last call ended.
  void Choose(size_t count, const EvictionPolicy::MayLeave& may_leave,
              std::vector<uint32_t>& victims);

 private:
  void Lowest(size_t begin, size_t end, size_t count, const EvictionPolicy::MayLeave& may_leave,
              std::vector<uint32_t>& victims);

  std::vector<Score> scores_;
  size_t region_ = 0;  // the next one to look through
  uint32_t hand_ = 0;
};

}  // namespace strata::storage

#endif  // STRATA_STORAGE_EVICTION_SLOT_SCORES_H_

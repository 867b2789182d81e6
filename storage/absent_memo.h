// Positions that were looked for and exist nowhere.
#ifndef STRATA_STORAGE_ABSENT_MEMO_H_
#define STRATA_STORAGE_ABSENT_MEMO_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "proto/core/ids.h"
#include "proto/core/position.h"

namespace strata::storage {

// A table has one writer, so what was absent stays absent until the table itself creates it: a key
// that is new is looked for below once, not for each of prefetch, pull and push. Says yes only of
// what was added and not removed since; may forget. Memory: 8 bytes times min(2^16, capacity
// rounded up to a power of two).
class AbsentMemo {
 public:
  explicit AbsentMemo(size_t capacity)
      : entries_(std::min(kMostEntries, std::bit_ceil(std::max<size_t>(1, capacity)))) {}

  void Add(Position position) { EntryOf(position) = NameOf(position); }
  void Remove(Position position) {
    if (Holds(position)) EntryOf(position) = 0;
  }
  bool Holds(Position position) const {
    const uint64_t name = NameOf(position);
    return name != 0 && entries_[Index(position)] == name;
  }

 private:
  static constexpr size_t kMostEntries = size_t{1} << 16;

  // 0: no position. The last position has that name too, and is never held.
  static uint64_t NameOf(Position position) { return position.value + 1; }
  size_t Index(Position position) const { return Mix64(position.value) & (entries_.size() - 1); }
  uint64_t& EntryOf(Position position) { return entries_[Index(position)]; }

  std::vector<uint64_t> entries_;
};

}  // namespace strata::storage

#endif  // STRATA_STORAGE_ABSENT_MEMO_H_

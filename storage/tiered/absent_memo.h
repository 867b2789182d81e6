// Positions that were looked for and exist nowhere.
#ifndef STRATA_STORAGE_TIERED_ABSENT_MEMO_H_
#define STRATA_STORAGE_TIERED_ABSENT_MEMO_H_

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
// what was added and not removed since; may forget, which a set of kWays entries rarely does while
// it holds fewer positions than it has room for. Memory: Bytes(capacity).
class AbsentMemo {
 public:
  explicit AbsentMemo(size_t capacity) : entries_(Entries(capacity)) {}

  static size_t Bytes(size_t capacity) { return 8 * Entries(capacity); }

  void Add(Position position) {
    const uint64_t name = NameOf(position);
    const size_t set = SetOf(position);
    // In a full set one of those before goes, which one depends on the new one.
    size_t place = set + (Mix64(position.value) >> 61);
    for (size_t i = set; i < set + kWays; ++i) {
      if (entries_[i] == name) return;
      if (entries_[i] == 0) place = i;
    }
    entries_[place] = name;
  }
  void Remove(Position position) {
    const size_t at = Find(position);
    if (at < entries_.size()) entries_[at] = 0;
  }
  bool Holds(Position position) const { return Find(position) < entries_.size(); }

 private:
  static constexpr size_t kWays = 8;  // a cache line
  static constexpr size_t kMostEntries = size_t{1} << 16;

  static size_t Entries(size_t capacity) {
    return std::min(kMostEntries, std::bit_ceil(std::max(kWays, capacity)));
  }
  // 0: no position. The last position has that name too, and is never held.
  static uint64_t NameOf(Position position) { return position.value + 1; }
  size_t SetOf(Position position) const {
    return (Mix64(position.value) & (entries_.size() / kWays - 1)) * kWays;
  }
  // entries_.size(): not held.
  size_t Find(Position position) const {
    const uint64_t name = NameOf(position);
    const size_t set = SetOf(position);
    for (size_t i = set; name != 0 && i < set + kWays; ++i) {
      if (entries_[i] == name) return i;
    }
    return entries_.size();
  }

  std::vector<uint64_t> entries_;
};

}  // namespace strata::storage

#endif  // STRATA_STORAGE_TIERED_ABSENT_MEMO_H_

#include <algorithm>

#include "storage/row_store.h"

namespace strata::storage {

RowStore::Cursor::Cursor(const RowStore& store, Position first, Position last)
    : store_(store), first_(first), last_(last) {
  first_ = std::max(first_, store.options_.first);
  last_ = std::min(last_, store.options_.last);
  done_ = store.size_ == 0 || first_ > last_;
  if (!done_ && store.spread_ == Spread::kUniform) next_bucket_ = store.HomeOf(first_);
  Fill();
}

void RowStore::Cursor::Next() {
  if (++at_ == window_.size()) Fill();
}

void RowStore::Cursor::Fill() {
  window_.clear();
  at_ = 0;
  while (window_.empty() && !done_) {
    if (store_.spread_ == Spread::kUniform) {
      FillUniform();
    } else {
      FillClustered();
    }
  }
  std::sort(window_.begin(), window_.end());
}

// The rows whose home is one of a run of buckets: those buckets, and what went past them. Homes
// rise with the position, so run after run is in order.
void RowStore::Cursor::FillUniform() {
  const uint64_t begin = next_bucket_;
  const uint64_t last_home = store_.HomeOf(last_);
  const uint64_t end = std::min(begin + kWindow / kBucketEntries, last_home + 1);
  const Bucket* all = store_.buckets();
  const uint64_t count = store_.bucket_count_;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t at = (begin + i) % count;
    // Behind the run: only what came from it, through every bucket on the way.
    if (begin + i >= end && all[(at + count - 1) % count].passed == 0) break;
    for (size_t e = 0; e < kBucketEntries; ++e) {
      if (all[at].tags[e] == 0) continue;
      const Position position = store_.PositionAt(all[at].SlotOf(e));
      if (position < first_ || last_ < position) continue;
      const uint64_t home = store_.HomeOf(position);
      if (begin <= home && home < end) window_.push_back({position, all[at].SlotOf(e)});
    }
  }
  next_bucket_ = end;
  done_ = end > last_home;
}

// The kWindow smallest positions from first_ on, by a sweep over the index.
void RowStore::Cursor::FillClustered() {
  const Bucket* all = store_.buckets();
  bool more = false;
  for (uint64_t b = 0; b < store_.bucket_count_; ++b) {
    for (size_t e = 0; e < kBucketEntries; ++e) {
      if (all[b].tags[e] == 0) continue;
      const Position position = store_.PositionAt(all[b].SlotOf(e));
      if (position < first_ || last_ < position) continue;
      window_.push_back({position, all[b].SlotOf(e)});
      if (window_.size() < 2 * kWindow) continue;
      std::nth_element(window_.begin(), window_.begin() + kWindow, window_.end());
      window_.resize(kWindow);
      more = true;
    }
  }
  if (window_.size() > kWindow) {
    std::nth_element(window_.begin(), window_.begin() + kWindow, window_.end());
    window_.resize(kWindow);
    more = true;
  }
  done_ = !more;
  if (more) {
    first_ = std::max_element(window_.begin(), window_.end())->position.Next();
  }
}

}  // namespace strata::storage

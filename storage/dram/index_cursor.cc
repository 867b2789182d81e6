#include <algorithm>

#include "storage/dram/index.h"

namespace strata::storage {
namespace {

// Rows lie anywhere, so what says their position is a cache miss each; about 35 at a time.
constexpr size_t kBucketsAhead = 4;

}  // namespace

RowIndex::Cursor::Cursor(const RowIndex& index, Position first, Position last)
    : index_(index), first_(first), last_(last) {
  first_ = std::max(first_, index.options_.first);
  last_ = std::min(last_, index.options_.last);
  done_ = index.rows_ == 0 || first_ > last_;
  if (!done_) next_ = index.HomeOf(first_);
  Fill();
}

void RowIndex::Cursor::Next() {
  if (++at_ == window_.size()) Fill();
}

void RowIndex::Cursor::Fill() {
  window_.clear();
  at_ = 0;
  while (window_.empty() && !done_) {
    if (index_.spread_ == Spread::kUniform) {
      FillUniform();
    } else {
      FillClustered();
    }
  }
  std::sort(window_.begin(), window_.end());
}

// Where a bucket's rows say their positions; returns the bucket after it.
const RowIndex::Bucket* RowIndex::Cursor::PrefetchRows(const Bucket* bucket) const {
  for (size_t e = 0; e < kBucketEntries; ++e) {
    if (bucket->tags[e] != 0) __builtin_prefetch(index_.slabs_.At(bucket->SlotOf(e)));
  }
  return index_.After(bucket);
}

// The rows whose home is one of a run of buckets: those buckets, and what went past them. Homes
// rise with the position, first in the new array and from the boundary on in the old one, so run
// after run is in order.
void RowIndex::Cursor::FillUniform() {
  const Bucket* const begin = next_;
  const Bucket* const last_home = index_.HomeOf(last_);
  const bool here = index_.SameArray(begin, last_home);
  const Bucket* const stop = here ? last_home + 1 : index_.now_.end;
  const Bucket* const end = begin + std::min<ptrdiff_t>(kWindow / kBucketEntries, stop - begin);
  const Bucket* at = begin;
  uint64_t left = index_.now_.count() + index_.old_.count();
  bool behind = false;  // of the run: only what came from it, through every bucket on the way
  const Bucket* ahead = begin;
  for (size_t i = 0; i < kBucketsAhead; ++i) ahead = PrefetchRows(ahead);
  do {
    ahead = PrefetchRows(ahead);
    for (size_t e = 0; e < kBucketEntries; ++e) {
      if (at->tags[e] == 0) continue;
      const Position position = index_.slabs_.PositionAt(at->SlotOf(e));
      if (position < first_ || last_ < position) continue;
      const Bucket* home = index_.HomeOf(position);
      if (begin <= home && home < end) window_.push_back({position, at->SlotOf(e)});
    }
    behind = behind || at + 1 == end;
    if (behind && at->passed == 0) break;
    at = index_.After(at);
  } while (--left > 0 && at != begin);
  done_ = here && end == stop;
  next_ = !here && end == stop ? index_.old_.begin + index_.drained_ : end;
}

// The kWindow smallest positions from first_ on, by a sweep over the index.
void RowIndex::Cursor::FillClustered() {
  bool more = false;
  const auto keep_smallest = [&] {
    std::nth_element(window_.begin(), window_.begin() + kWindow, window_.end());
    window_.resize(kWindow);
    more = true;
  };
  const auto sweep = [&](const Bucket* b, const Bucket* end) {
    for (; b != end; ++b) {
      for (size_t e = 0; e < kBucketEntries; ++e) {
        if (b->tags[e] == 0) continue;
        const Position position = index_.slabs_.PositionAt(b->SlotOf(e));
        if (position < first_ || last_ < position) continue;
        window_.push_back({position, b->SlotOf(e)});
        if (window_.size() == 2 * kWindow) keep_smallest();
      }
    }
  };
  sweep(index_.now_.begin, index_.now_.end);
  if (index_.growing()) sweep(index_.old_.begin + index_.drained_, index_.old_.end);
  if (window_.size() > kWindow) keep_smallest();
  done_ = !more;
  if (more) {
    first_ = std::max_element(window_.begin(), window_.end())->position.Next();
  }
}

}  // namespace strata::storage

#include "server/preimages.h"

#include <algorithm>
#include <utility>

namespace strata::server {

void PreImages::Merge(const PreImages& rows) {
  if (rows.positions_.empty()) return;
  PreImages merged(dim_);
  merged.positions_.reserve(positions_.size() + rows.positions_.size());
  merged.weights_.reserve(merged.positions_.capacity() * dim_);
  const auto take = [&](const PreImages& from, size_t i) {
    std::copy_n(from.weights(i), dim_, merged.Extend({&from.positions_[i], 1}));
  };
  size_t here = 0, there = 0;
  while (here < positions_.size() || there < rows.positions_.size()) {
    if (there == rows.positions_.size()) {
      take(*this, here++);
    } else if (here == positions_.size() || rows.positions_[there] < positions_[here]) {
      take(rows, there++);
    } else {
      there += rows.positions_[there] == positions_[here];
      take(*this, here++);
    }
  }
  *this = std::move(merged);
}

const float* PreImages::Cursor::Find(Position position) {
  const std::vector<Position>& all = images_.positions_;
  // Gallop: requests and steps are of like size, so the next one is near.
  size_t step = 1;
  while (at_ + step < all.size() && all[at_ + step] < position) step *= 2;
  const auto begin = all.begin() + static_cast<ptrdiff_t>(at_ + step / 2);
  const auto end = all.begin() + static_cast<ptrdiff_t>(std::min(at_ + step + 1, all.size()));
  at_ = static_cast<size_t>(std::lower_bound(begin, end, position) - all.begin());
  return at_ < all.size() && all[at_] == position ? images_.weights(at_) : nullptr;
}

}  // namespace strata::server

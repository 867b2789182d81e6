#include "server/preimages.h"

#include <algorithm>

namespace strata::server {

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

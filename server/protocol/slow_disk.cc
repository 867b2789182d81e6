#include "server/protocol/slow_disk.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace strata::server {

void SlowDisk::Began(absl::Time now) {
  if (under_way_++ == 0) oldest_ = now;
  if (!span_) span_ = now;
}

void SlowDisk::Ended(absl::Duration lasted, absl::Time now) {
  if (under_way_ > 0) --under_way_;
  oldest_ = now;
  spent_ += lasted;
  ++writes_;
  if (span_ && now - *span_ >= kSpan) Close(now);
}

void SlowDisk::Close(absl::Time now) {
  const absl::Duration mean = spent_ / static_cast<int64_t>(writes_);
  const absl::Duration usual = Usual();
  const bool known = spans_.size() >= kUsual;
  if (known && TooLong(mean, slow_ ? usual / 2 : usual)) {
    slow_ = Verdict{slow_ ? slow_->since : *span_, mean, usual};
  } else {
    slow_.reset();
    spans_.push_back(mean);
    if (spans_.size() > kRemembered) spans_.pop_front();
  }
  span_ = now;
  spent_ = absl::ZeroDuration();
  writes_ = 0;
}

absl::Duration SlowDisk::Usual() const {
  if (spans_.empty()) return absl::InfiniteDuration();
  std::vector<absl::Duration> all(spans_.begin(), spans_.end());
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  std::nth_element(all.begin(), middle, all.end());
  return *middle;
}

std::optional<SlowDisk::Verdict> SlowDisk::Look(absl::Time now) const {
  const absl::Duration stands = now - oldest_;
  if (under_way_ > 0 && spans_.size() >= kUsual && stands > kSpan && TooLong(stands, Usual())) {
    return Verdict{slow_ ? slow_->since : oldest_, stands, Usual()};
  }
  return slow_;
}

}  // namespace strata::server

#include "proto/runtime/base/manual_clock.h"

namespace strata {

ManualClock::ManualClock() : ManualClock(absl::FromUnixSeconds(1767225600)) {}

ManualClock::ManualClock(absl::Time start) : now_(start) {}

absl::Time ManualClock::Now() const {
  MutexLock lock(&mu_);
  return now_;
}

void ManualClock::Advance(absl::Duration by) {
  MutexLock lock(&mu_);
  now_ += by;
}

}  // namespace strata

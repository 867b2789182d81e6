#include "proto/runtime/base/clock.h"

#include <chrono>

#include "absl/time/clock.h"

namespace strata {
namespace {

// The wall clock at the start plus what the monotonic clock counted since: setting the machine's
// clock moves no lease and no deadline.
class RealClock : public Clock {
 public:
  absl::Time Now() const override {
    return wall_ + absl::FromChrono(std::chrono::steady_clock::now() - steady_);
  }
  absl::Time Wall(absl::Time time) const override {
    // Not absl::Now(), which notices up to two seconds late that the clock was set.
    const absl::Duration set = absl::FromChrono(std::chrono::system_clock::now()) - Now();
    return absl::AbsDuration(set) < absl::Seconds(1) ? time : time + set;
  }

 private:
  const absl::Time wall_ = absl::Now();
  const std::chrono::steady_clock::time_point steady_ = std::chrono::steady_clock::now();
};

}  // namespace

Clock* Clock::Real() {
  static RealClock& clock = *new RealClock;
  return &clock;
}

}  // namespace strata

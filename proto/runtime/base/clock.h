// Time as a dependency, so that tests advance it by hand.
#ifndef STRATA_PROTO_RUNTIME_BASE_CLOCK_H_
#define STRATA_PROTO_RUNTIME_BASE_CLOCK_H_

#include "absl/time/time.h"

namespace strata {

// Thread-safe. Monotonic: Now never goes back. The real clock shows the wall clock's time when the
// process begins, and is not moved by setting that: it is near enough for a person who reads a
// log, and differs from process to process. What is stored as a time of it decides nothing in a
// later process.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual absl::Time Now() const = 0;
  // What the wall clock showed at `time` of Now(), had it always been set as it is now: for people,
  // who compare it with a clock of theirs. Differences below a second are left out.
  virtual absl::Time Wall(absl::Time time) const { return time; }

  // The system's clock; lives for the whole process.
  static Clock* Real();
};

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_BASE_CLOCK_H_

// Time as a dependency, so that tests advance it by hand.
#ifndef STRATA_PROTO_RUNTIME_CLOCK_H_
#define STRATA_PROTO_RUNTIME_CLOCK_H_

#include "absl/time/time.h"

namespace strata {

// Thread-safe. Monotonic: Now never goes back.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual absl::Time Now() const = 0;

  // The system's clock; lives for the whole process.
  static Clock* Real();
};

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_CLOCK_H_

// A clock that stands still until it is moved by hand.
// Tested by tests/proto/runtime/base/clock_test.cc
#ifndef STRATA_PROTO_RUNTIME_BASE_MANUAL_CLOCK_H_
#define STRATA_PROTO_RUNTIME_BASE_MANUAL_CLOCK_H_

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "proto/core/mutex.h"
#include "proto/runtime/base/clock.h"

namespace strata {

// Thread-safe. Starts at 2026-01-01 00:00 UTC unless told otherwise.
class ManualClock : public Clock {
 public:
  ManualClock();
  explicit ManualClock(absl::Time start);

  absl::Time Now() const override;
  // REQUIRES: by >= 0.
  void Advance(absl::Duration by);

 private:
  mutable Mutex mu_;
  absl::Time now_ ABSL_GUARDED_BY(mu_);
};

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_BASE_MANUAL_CLOCK_H_

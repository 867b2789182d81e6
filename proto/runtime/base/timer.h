// Time that calls back, so that waits depend on an injected clock as well.
#ifndef STRATA_PROTO_RUNTIME_BASE_TIMER_H_
#define STRATA_PROTO_RUNTIME_BASE_TIMER_H_

#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/core/mutex.h"
#include "proto/runtime/base/clock.h"

namespace strata {

// A clock with alarms. Thread-safe.
//
//   timer->At(timer->Now() + absl::Seconds(1), this, [mailbox] { mailbox->Post(...); });
//   ...
//   timer->Cancel(this);  // nothing of `this` runs from here on
class Timer : public Clock {
 public:
  // Calls `work` once, at `when` of Now() or soon after, from the timer's thread. It must not block
  // and may call At. `owner` names the alarm for Cancel. The callers bound the number of alarms.
  virtual void At(absl::Time when, const void* owner, std::function<void()> work) = 0;
  // For an alarm that cannot do its work yet: calls `work` a moment later, after what is due by
  // now. A timer that is moved by hand stands still until the work is done.
  virtual void TryAgain(const void* owner, std::function<void()> work) = 0;
  // Drops the owner's alarms. When it returns, nothing of the owner runs or will run.
  // REQUIRES: not called from an alarm; the caller holds no lock that an alarm of the owner waits
  // for.
  virtual void Cancel(const void* owner) = 0;

  // Clock::Real()'s time and one thread; lives for the whole process.
  static Timer* Real();
};

// A timer with a thread of its own and Clock::Real()'s time, which the setting of the machine's
// clock does not move. The destructor drops the alarms that are left.
std::unique_ptr<Timer> MakeTimer();

// absl::Mutex::AwaitWithDeadline by the timer's time: releases `mu` until `condition` holds or
// Now() is `when`, and returns whether the condition holds. (Abseil's own timed waits end by the
// wall clock.) Who holds `mu` for long delays no other alarm of the timer. Nothing of the wait runs
// when it has returned, so that `mu` may go.
bool AwaitUntil(Timer* timer, Mutex* mu, const absl::Condition& condition, absl::Time when)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_BASE_TIMER_H_

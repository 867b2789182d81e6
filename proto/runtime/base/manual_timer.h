// A timer that stands still until it is moved by hand.
// Tested by tests/proto/runtime/base/timer_test.cc
#ifndef STRATA_PROTO_RUNTIME_BASE_MANUAL_TIMER_H_
#define STRATA_PROTO_RUNTIME_BASE_MANUAL_TIMER_H_

#include <cstddef>
#include <functional>

#include "absl/time/time.h"
#include "proto/runtime/base/alarm_queue.h"
#include "proto/runtime/base/manual_clock.h"
#include "proto/runtime/base/timer.h"

namespace strata {

// Thread-safe; starts where ManualClock does. Alarms run in the thread that calls Advance.
//
//   timer.AwaitAlarms(1);                       // another thread has gone to sleep
//   CHECK(timer.next() == start + kBackoff);
//   timer.AdvanceTo(timer.next());              // and wakes up
class ManualTimer : public Timer {
 public:
  absl::Time Now() const override { return clock_.Now(); }
  void At(absl::Time when, const void* owner, std::function<void()> work) override {
    alarms_.Add(when, owner, std::move(work));
  }
  void TryAgain(const void* owner, std::function<void()> work) override;
  void Cancel(const void* owner) override { alarms_.Cancel(owner); }

  // Moves the time and runs what is due by then, each alarm at its own time. One thread at a time.
  // REQUIRES: by >= 0.
  void Advance(absl::Duration by) { AdvanceTo(Now() + by); }
  void AdvanceTo(absl::Time when);

  // When the first alarm is due; the infinite future where there is none.
  absl::Time next() const { return alarms_.next(); }
  size_t alarms() const { return alarms_.size(); }
  // Returns when at least `n` alarms wait: other threads have set them.
  void AwaitAlarms(size_t n) { alarms_.AwaitSize(n); }

 private:
  ManualClock clock_;
  AlarmQueue alarms_;
};

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_BASE_MANUAL_TIMER_H_

// The alarms of a timer, in the order of their times.
// Tested by tests/proto/runtime/base/timer_test.cc
#ifndef STRATA_PROTO_RUNTIME_BASE_ALARM_QUEUE_H_
#define STRATA_PROTO_RUNTIME_BASE_ALARM_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "proto/core/mutex.h"

namespace strata {

// What the timers share: it keeps alarms and runs those whose time has come, but knows no time
// itself. Thread-safe; one thread at a time calls RunFirst.
class AlarmQueue {
 public:
  // Returns whether the alarm is the first one now. Alarms of one time run in the order of Add.
  bool Add(absl::Time when, const void* owner, std::function<void()> work);
  // As Timer::Cancel.
  void Cancel(const void* owner);
  // When the first alarm is due; the infinite future where there is none.
  absl::Time next() const;
  size_t size() const;
  // Runs the first alarm if it is due at `now`; false where none is.
  bool RunFirst(absl::Time now);
  // Returns when at least `n` alarms wait.
  void AwaitSize(size_t n);

 private:
  using Place = std::pair<absl::Time, uint64_t>;  // the second counts the calls of Add
  using OfOwner = std::multimap<const void*, Place>;
  struct Alarm {
    OfOwner::iterator of_owner;  // its own entry there
    std::function<void()> work;
  };

  mutable Mutex mu_;
  uint64_t added_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<Place, Alarm> alarms_ ABSL_GUARDED_BY(mu_);
  // So that Cancel, with which every wait ends, looks at its owner's alone.
  OfOwner of_owner_ ABSL_GUARDED_BY(mu_);
  const void* running_ ABSL_GUARDED_BY(mu_) = nullptr;  // owner of the alarm that runs
};

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_BASE_ALARM_QUEUE_H_

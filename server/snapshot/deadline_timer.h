// Calls back at times: pulls that wait no longer, and retries of what the disk refused.
#ifndef STRATA_SERVER_SNAPSHOT_DEADLINE_TIMER_H_
#define STRATA_SERVER_SNAPSHOT_DEADLINE_TIMER_H_

#include <functional>
#include <memory>

#include "absl/time/time.h"

namespace strata::server {

// Thread-safe. Callbacks run on the timer's thread, must not block and may call At.
class DeadlineTimer {
 public:
  virtual ~DeadlineTimer() = default;
  // Calls `work` once, at `when` or soon after. `owner` names it for Cancel. At most one entry per
  // waiting request and shard is ever queued.
  virtual void At(absl::Time when, const void* owner, std::function<void()> work) = 0;
  // Drops what is queued of `owner`; when it returns, nothing of it runs or will run.
  // Not from a callback.
  virtual void Cancel(const void* owner) = 0;
  virtual absl::Time Now() = 0;
};

// One thread, by the monotonic clock. The destructor drops what is queued.
std::unique_ptr<DeadlineTimer> MakeDeadlineTimer();

// Runs nothing by itself: time moves when a test says so, on its own thread.
class ManualTimer : public DeadlineTimer {
 public:
  ManualTimer();
  ~ManualTimer() override;
  void At(absl::Time when, const void* owner, std::function<void()> work) override;
  void Cancel(const void* owner) override;
  absl::Time Now() override;
  void Advance(absl::Duration by);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace strata::server

#endif  // STRATA_SERVER_SNAPSHOT_DEADLINE_TIMER_H_

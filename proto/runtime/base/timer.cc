#include "proto/runtime/base/timer.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "proto/runtime/base/alarm_queue.h"

namespace strata {
namespace {

class RealTimer : public Timer {
 public:
  RealTimer() : thread_([this] { Run(); }) {}

  ~RealTimer() override {
    {
      std::lock_guard<std::mutex> lock(mu_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  absl::Time Now() const override { return Clock::Real()->Now(); }
  absl::Time Wall(absl::Time time) const override { return Clock::Real()->Wall(time); }

  void At(absl::Time when, const void* owner, std::function<void()> work) override {
    if (!alarms_.Add(when, owner, std::move(work))) return;
    {
      std::lock_guard<std::mutex> lock(mu_);
      new_first_ = true;
    }
    changed_.notify_all();
  }

  void TryAgain(const void* owner, std::function<void()> work) override {
    constexpr absl::Duration kMoment = absl::Milliseconds(1);
    At(Now() + kMoment, owner, std::move(work));
  }

  void Cancel(const void* owner) override { alarms_.Cancel(owner); }

 private:
  void Run() {
    // Longer waits are cut in pieces: no time overflows what the system can count.
    constexpr absl::Duration kMostWait = absl::Hours(1);
    while (true) {
      while (alarms_.RunFirst(Now())) {
      }
      const absl::Duration left = std::min(alarms_.next() - Now(), kMostWait);
      std::unique_lock<std::mutex> lock(mu_);
      // By the steady clock, unlike Abseil's timed waits.
      changed_.wait_until(lock, std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(left),
                          [this] { return stop_ || new_first_; });
      if (stop_) return;
      new_first_ = false;
    }
  }

  AlarmQueue alarms_;
  std::mutex mu_;
  std::condition_variable changed_;
  bool stop_ = false;       // guarded by mu_
  bool new_first_ = false;  // guarded by mu_; an alarm came in front of those that Run saw
  std::thread thread_;      // last: starts when everything else is there
};

// The alarm of one wait, which tells the wait that its time has come. It never waits for the mutex
// itself: its owner may hold that for long, and the timer's thread is there for all alarms.
class WaitAlarm {
 public:
  WaitAlarm(Timer* timer, Mutex* mu) : timer_(timer), mu_(mu) {}

  bool due() const { return due_; }

  void Set(absl::Time when) {
    timer_->At(when, this, [this] { Ring(); });
  }

  // When it returns, nothing of the alarm runs or will run. Mutex held: Ring does not wait for it.
  void End() {
    over_ = true;
    timer_->Cancel(this);
  }

 private:
  // Who unlocks the mutex wakes those whose conditions hold. If somebody else holds it, that is
  // them, unless they have looked at the conditions already: so it is tried again.
  void Ring() {
    due_ = true;
    if (mu_->TryLock()) {
      mu_->Unlock();
    } else if (!over_) {
      timer_->TryAgain(this, [this] { Ring(); });
    }
  }

  Timer* const timer_;
  Mutex* const mu_;
  std::atomic<bool> due_{false};
  std::atomic<bool> over_{false};
};

}  // namespace

Timer* Timer::Real() {
  static RealTimer& timer = *new RealTimer;
  return &timer;
}

std::unique_ptr<Timer> MakeTimer() { return std::make_unique<RealTimer>(); }

bool AwaitUntil(Timer* timer, Mutex* mu, const absl::Condition& condition, absl::Time when) {
  if (when == absl::InfiniteFuture()) {
    mu->Await(condition);
    return true;
  }
  if (condition.Eval()) return true;
  if (timer->Now() >= when) return false;
  WaitAlarm alarm(timer, mu);
  alarm.Set(when);
  const auto over = [&] { return alarm.due() || condition.Eval(); };
  mu->Await(absl::Condition(&over));
  alarm.End();
  return condition.Eval();
}

}  // namespace strata

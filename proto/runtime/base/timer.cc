#include "proto/runtime/base/timer.h"

#include <algorithm>
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
  while (!condition.Eval()) {
    if (timer->Now() >= when) return false;
    bool expired = false;  // guarded by *mu
    timer->At(when, &expired, [mu, &expired] {
      MutexLock lock(mu);
      expired = true;
    });
    const auto over = [&] { return expired || condition.Eval(); };
    mu->Await(absl::Condition(&over));
    if (expired) return condition.Eval();
    // The alarm must be gone before this returns, and it may be waiting for `mu`.
    mu->Unlock();
    timer->Cancel(&expired);
    mu->Lock();
  }
  return true;
}

}  // namespace strata

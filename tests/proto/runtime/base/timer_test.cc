// Alarms: their order, their end, and waits that a manual timer ends.
#include "proto/runtime/base/timer.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/core/mutex.h"
#include "proto/runtime/base/manual_timer.h"

namespace strata {
namespace {

// absl::Notification that ThreadSanitizer sees. To be destroyed when Notify has returned.
class Signal {
 public:
  void Notify() {
    MutexLock lock(&mu_);
    notified_ = true;
  }
  bool HasBeenNotified() {
    MutexLock lock(&mu_);
    return notified_;
  }
  void WaitForNotification() {
    MutexLock lock(&mu_);
    mu_.Await(absl::Condition(&notified_));
  }
  bool WaitForNotificationWithTimeout(absl::Duration timeout) {
    MutexLock lock(&mu_);
    return mu_.AwaitWithTimeout(absl::Condition(&notified_), timeout);
  }

 private:
  Mutex mu_;
  bool notified_ ABSL_GUARDED_BY(mu_) = false;
};

TEST_CASE("alarms run once, in the order of their times, each at its own", "[timer]") {
  ManualTimer timer;
  const absl::Time start = timer.Now();
  std::vector<std::pair<int, absl::Duration>> ran;
  const auto note = [&](int i) { return [&, i] { ran.emplace_back(i, timer.Now() - start); }; };
  timer.At(start + absl::Seconds(3), &timer, note(3));
  timer.At(start + absl::Seconds(1), &timer, note(1));
  timer.At(start + absl::Seconds(1), &timer, note(2));
  CHECK(timer.next() == start + absl::Seconds(1));
  timer.Advance(absl::Milliseconds(999));
  CHECK(ran.empty());
  timer.Advance(absl::Milliseconds(1));
  CHECK(ran.size() == 2);
  timer.Advance(absl::Hours(1));
  CHECK(ran == std::vector<std::pair<int, absl::Duration>>{
                   {1, absl::Seconds(1)}, {2, absl::Seconds(1)}, {3, absl::Seconds(3)}});
  CHECK(timer.Now() - start == absl::Hours(1) + absl::Seconds(1));
  CHECK(timer.next() == absl::InfiniteFuture());
}

TEST_CASE("an alarm sets another, and Cancel drops an owner's alone", "[timer]") {
  ManualTimer timer;
  int runs = 0, others = 0;
  const auto again = [&] { timer.At(timer.Now() + absl::Seconds(1), &runs, [&] { ++runs; }); };
  timer.At(timer.Now(), &runs, again);
  timer.At(timer.Now() + absl::Seconds(9), &others, [&] { ++others; });
  timer.Advance(absl::Seconds(1));
  CHECK(runs == 1);
  again();
  timer.Cancel(&runs);
  timer.Advance(absl::Seconds(9));
  CHECK(runs == 1);
  CHECK(others == 1);
}

TEST_CASE("Cancel returns when the owner's alarm has ended, and drops what that has set",
          "[timer]") {
  ManualTimer timer;
  Signal began, go_on, cancelled;
  std::atomic<bool> ended{false};
  const auto held = std::make_shared<int>(0);
  timer.At(timer.Now(), &began, [&, held] {
    began.Notify();
    go_on.WaitForNotification();
    // Time for a Cancel that does not wait. One that does is not back before the end.
    cancelled.WaitForNotificationWithTimeout(absl::Milliseconds(50));
    timer.At(timer.Now() + absl::Hours(1), &began, [] {});
    ended = true;
  });
  std::thread time([&] { timer.Advance(absl::ZeroDuration()); });
  began.WaitForNotification();
  timer.Cancel(&go_on);  // of another owner: it waits for nothing
  go_on.Notify();
  timer.Cancel(&began);
  const bool had_ended = ended;
  const auto holders = held.use_count();
  const size_t left = timer.alarms();
  cancelled.Notify();
  time.join();
  CHECK(had_ended);
  CHECK(holders == 1);  // what the alarm held is gone, too
  CHECK(left == 0);
}

TEST_CASE("many alarms of one owner: each runs at its time, and the others are dropped",
          "[timer]") {
  // The newest is due first. A queue that looks through all of the owner's takes minutes.
  constexpr int kAlarms = 200000;
  ManualTimer timer;
  const absl::Time start = timer.Now();
  std::vector<int> ran;
  for (int i = kAlarms; i > 0; --i) {
    timer.At(start + absl::Milliseconds(i), &ran, [&ran, i] { ran.push_back(i); });
  }
  timer.Advance(absl::Milliseconds(kAlarms / 2));
  CHECK(timer.next() == start + absl::Milliseconds(kAlarms / 2 + 1));
  timer.Cancel(&ran);
  CHECK(timer.alarms() == 0);
  timer.Advance(absl::Hours(1));
  std::vector<int> expected(kAlarms / 2);
  std::iota(expected.begin(), expected.end(), 1);
  CHECK(ran == expected);
}

TEST_CASE("the real timer runs what is due, the earliest first", "[timer]") {
  const auto timer = MakeTimer();
  CHECK(Timer::Real() == Timer::Real());
  Signal last;
  std::vector<int> ran;
  const absl::Time start = timer->Now();
  timer->At(start + absl::Hours(10), &last, [&] { ran.push_back(3); });  // never
  timer->At(start + absl::Milliseconds(2), &last, [&] {
    ran.push_back(2);
    last.Notify();
  });
  timer->At(start + absl::Milliseconds(1), &last, [&] { ran.push_back(1); });
  last.WaitForNotification();
  CHECK(timer->Now() - start >= absl::Milliseconds(2));
  timer->Cancel(&last);
  CHECK(ran == std::vector<int>{1, 2});
}

TEST_CASE("an alarm wakes the real timer, whatever it waits for", "[timer]") {
  const auto timer = MakeTimer();
  timer->At(timer->Now() + absl::Hours(10), &timer, [] {});
  for (int i = 0; i < 100; ++i) {
    Signal ran;
    timer->At(timer->Now(), &ran, [&] { ran.Notify(); });
    ran.WaitForNotification();
    timer->Cancel(&ran);
  }
}

struct Waiting {
  ManualTimer timer;
  Mutex mu;
  bool condition ABSL_GUARDED_BY(mu) = false;
  bool met = false;
  absl::Time until = timer.Now() + absl::Seconds(5);
  std::thread thread;

  void Start() {
    thread = std::thread([this] {
      MutexLock lock(&mu);
      met = AwaitUntil(&timer, &mu, absl::Condition(&condition), until);
    });
  }
};

TEST_CASE("a wait ends by its condition", "[timer]") {
  Waiting w;
  w.Start();
  w.timer.AwaitAlarms(1);
  {
    MutexLock lock(&w.mu);
    w.condition = true;
  }
  w.thread.join();
  CHECK(w.met);
  CHECK(w.timer.alarms() == 0);
}

TEST_CASE("a wait ends by the timer's time", "[timer]") {
  Waiting w;
  w.Start();
  w.timer.AwaitAlarms(1);
  CHECK(w.timer.next() == w.until);
  w.timer.Advance(absl::Seconds(5));
  w.thread.join();
  CHECK_FALSE(w.met);
  // A time that is over is not waited for.
  MutexLock lock(&w.mu);
  CHECK_FALSE(AwaitUntil(&w.timer, &w.mu, absl::Condition(&w.condition), w.until));
}

TEST_CASE("a wait without an end sets no alarm", "[timer]") {
  Waiting w;
  w.until = absl::InfiniteFuture();
  {
    MutexLock lock(&w.mu);
    w.condition = true;
  }
  w.Start();
  w.thread.join();
  CHECK(w.met);
  CHECK(w.timer.alarms() == 0);
}

// A wait that holds its mutex while its time comes: its condition, looked at for the second time,
// takes until another owner's alarm of the same time has run.
struct SlowWait {
  bool other_ran = false;
  bool met = false;

  void Run(Timer* timer, absl::Time until, bool condition) {
    Mutex mu;
    Signal other;
    int looks = 0;
    const auto slow = [&] {
      if (++looks == 1) return false;
      if (looks == 2) {
        timer->At(until, &other, [&] { other.Notify(); });
        other_ran = other.WaitForNotificationWithTimeout(absl::Seconds(20));
      }
      return condition;
    };
    MutexLock lock(&mu);
    met = AwaitUntil(timer, &mu, absl::Condition(&slow), until);
    timer->Cancel(&other);
  }
};

TEST_CASE("who holds a mutex for long delays no alarm of others", "[timer]") {
  for (const bool condition : {false, true}) {
    INFO(condition);
    ManualTimer timer;
    SlowWait wait;
    std::thread waits([&] { wait.Run(&timer, timer.Now() + absl::Seconds(5), condition); });
    timer.AwaitAlarms(2);
    timer.Advance(absl::Seconds(5));
    waits.join();
    CHECK(wait.other_ran);
    CHECK(wait.met == condition);
    CHECK(timer.alarms() == 0);
  }
}

TEST_CASE("who holds a mutex for long delays no alarm of the real timer", "[timer]") {
  const auto timer = MakeTimer();
  for (const bool condition : {false, true}) {
    INFO(condition);
    SlowWait wait;
    wait.Run(timer.get(), timer->Now() + absl::Milliseconds(1), condition);
    CHECK(wait.other_ran);
    CHECK(wait.met == condition);
  }
}

// Its alarms do not end before somebody cancels them, or the test says so.
class LateTimer : public ManualTimer {
 public:
  void At(absl::Time when, const void* owner, std::function<void()> work) override {
    ManualTimer::At(when, owner, [this, work = std::move(work)] {
      work();
      may_end_.WaitForNotification();
      ended_ = true;
    });
  }
  void Cancel(const void* owner) override {
    LetEnd();
    ManualTimer::Cancel(owner);
  }
  void LetEnd() {
    if (!may_end_.HasBeenNotified()) may_end_.Notify();
  }
  bool ended() const { return ended_; }

 private:
  Signal may_end_;
  std::atomic<bool> ended_{false};
};

TEST_CASE("a wait returns when its alarm has ended, and not before", "[timer]") {
  LateTimer timer;
  const absl::Time until = timer.Now() + absl::Seconds(5);
  bool met = true, ended = false;
  std::thread waits([&] {
    const bool never = false;
    Mutex mu;
    MutexLock lock(&mu);
    met = AwaitUntil(&timer, &mu, absl::Condition(&never), until);
    ended = timer.ended();
    timer.LetEnd();
  });
  timer.AwaitAlarms(1);
  timer.AdvanceTo(until);
  waits.join();
  CHECK_FALSE(met);
  CHECK(ended);
}

TEST_CASE("a wait whose condition is met as its time comes says what holds", "[timer]") {
  const auto timer = MakeTimer();
  for (int i = 0; i < 300; ++i) {
    Mutex mu;
    bool condition = false;  // guarded by mu
    const absl::Time until = timer->Now() + absl::Microseconds(100);
    std::thread meets([&] {
      while (timer->Now() < until) std::this_thread::yield();
      MutexLock lock(&mu);
      condition = true;
    });
    {
      MutexLock lock(&mu);
      const bool met = AwaitUntil(timer.get(), &mu, absl::Condition(&condition), until);
      CHECK(met == condition);
    }
    meets.join();
  }
}

}  // namespace
}  // namespace strata

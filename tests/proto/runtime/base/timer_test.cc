// Alarms: their order, their end, and waits that a manual timer ends.
#include "proto/runtime/base/timer.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "proto/core/mutex.h"
#include "proto/runtime/base/manual_timer.h"

namespace strata {
namespace {

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

TEST_CASE("Cancel returns when the owner's alarm has ended", "[timer]") {
  const auto timer = MakeTimer();
  absl::Notification began, go_on;
  std::atomic<bool> ended{false};
  timer->At(timer->Now(), &began, [&] {
    began.Notify();
    go_on.WaitForNotification();
    timer->At(timer->Now() + absl::Hours(1), &began, [] {});
    ended = true;
  });
  began.WaitForNotification();
  timer->Cancel(&go_on);  // of another owner: it waits for nothing
  std::thread opens([&] { go_on.Notify(); });
  timer->Cancel(&began);
  CHECK(ended);
  opens.join();
}

TEST_CASE("the real timer runs what is due, the earliest first", "[timer]") {
  const auto timer = MakeTimer();
  CHECK(Timer::Real() == Timer::Real());
  absl::Notification last;
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
  CHECK(ran == std::vector<int>{1, 2});
}

TEST_CASE("an alarm wakes the real timer, whatever it waits for", "[timer]") {
  const auto timer = MakeTimer();
  timer->At(timer->Now() + absl::Hours(10), &timer, [] {});
  for (int i = 0; i < 100; ++i) {
    absl::Notification ran;
    timer->At(timer->Now(), &timer, [&] { ran.Notify(); });
    ran.WaitForNotification();
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

}  // namespace
}  // namespace strata

// Waits of Abseil with proto/runtime/base/abseil_waits.cc in the program: they do what they did,
// but by the monotonic clock. What comes of it in a cluster: tests/faults/clock_step_test.cc.
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "proto/runtime/base/clock.h"
#include "tests/proto/runtime/base/timed_waits.h"

namespace strata {
namespace {

TEST_CASE("Abseil waits for a time by the monotonic clock", "[waits]") {
  const testing::TimedWaits before = testing::TimedWaitsSoFar();
  absl::Notification never;
  CHECK_FALSE(never.WaitForNotificationWithTimeout(absl::Milliseconds(5)));
  absl::Mutex mu;
  absl::CondVar changed;
  {
    absl::MutexLock lock(&mu);
    changed.WaitWithTimeout(&mu, absl::Milliseconds(5));
  }
  const testing::TimedWaits after = testing::TimedWaitsSoFar();
  CHECK(after.monotonic >= before.monotonic + 2);
  CHECK(after.wall == before.wall);
}

TEST_CASE("a wait ends when its time is over", "[waits]") {
  absl::Notification never;
  const absl::Time start = Clock::Real()->Now();
  CHECK_FALSE(never.WaitForNotificationWithTimeout(absl::Milliseconds(30)));
  CHECK(Clock::Real()->Now() - start >= absl::Milliseconds(30));
  CHECK_FALSE(never.WaitForNotificationWithTimeout(absl::ZeroDuration()));
  CHECK_FALSE(never.WaitForNotificationWithTimeout(-absl::Seconds(1)));
  CHECK_FALSE(never.WaitForNotificationWithDeadline(absl::UnixEpoch()));
  CHECK_FALSE(never.WaitForNotificationWithDeadline(absl::InfinitePast()));
}

TEST_CASE("a wait ends when it is woken, each by its own", "[waits]") {
  constexpr int kThreads = 4, kRounds = 2000;
  absl::Mutex mu;
  int turn = 0;  // guarded by mu
  std::atomic<int> late{0};
  std::vector<std::thread> threads;
  for (int id = 0; id < kThreads; ++id) {
    threads.emplace_back([&, id] {
      for (int round = 0; round < kRounds; ++round) {
        const auto mine = [&] { return turn % kThreads == id; };
        absl::MutexLock lock(&mu);
        late += !mu.AwaitWithTimeout(absl::Condition(&mine), absl::Minutes(1));
        ++turn;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  CHECK(late == 0);
  CHECK(turn == kThreads * kRounds);
}

TEST_CASE("waits that are woken as their time ends lose nothing", "[waits]") {
  constexpr int kRounds = 300;
  absl::Mutex mu;
  absl::CondVar changed;
  int given = 0, taken = 0;  // guarded by mu
  std::thread giver([&] {
    for (int i = 0; i < kRounds; ++i) {
      absl::MutexLock lock(&mu);
      ++given;
      changed.Signal();
      const auto met = [&] { return taken == given; };
      mu.Await(absl::Condition(&met));
    }
  });
  {
    absl::MutexLock lock(&mu);
    while (taken < kRounds) {
      if (taken == given) changed.WaitWithTimeout(&mu, absl::Microseconds(50));
      taken = given;
    }
  }
  giver.join();
  CHECK(taken == kRounds);
}

}  // namespace
}  // namespace strata

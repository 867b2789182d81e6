// Waits of Abseil with proto/runtime/base/abseil_waits.cc in the program: they do what they did.
// That they go by the monotonic clock is seen in tests/faults/clock_step_test.cc.
#include <dlfcn.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/config.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "proto/runtime/base/clock.h"

namespace strata {
namespace {

TEST_CASE("Abseil's own library waits with our code", "[waits]") {
  void* const used = dlsym(
      RTLD_DEFAULT, ABSL_INTERNAL_TOKEN_STR(ABSL_INTERNAL_C_SYMBOL(AbslInternalPerThreadSemWait)));
  REQUIRE(used != nullptr);
  Dl_info info{};
  REQUIRE(dladdr(used, &info) != 0);
  INFO(info.dli_fname);
  CHECK(std::string(info.dli_fname).find("libabsl") == std::string::npos);
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

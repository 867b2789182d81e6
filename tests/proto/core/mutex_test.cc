#include "proto/core/mutex.h"

#include <catch2/catch.hpp>
#include <thread>
#include <vector>

namespace strata {
namespace {

TEST_CASE("a lock keeps others out, and a change wakes who awaits it", "[mutex]") {
  constexpr int kThreads = 3;
  constexpr int kTurns = 2000;
  Mutex mu;
  int turn = 0;
  std::vector<std::thread> threads;
  for (int me = 0; me < kThreads; ++me) {
    threads.emplace_back([&, me] {
      auto mine = [&] { return turn % kThreads == me; };
      for (int i = 0; i < kTurns; ++i) {
        MutexLock lock(&mu);
        mu.Await(absl::Condition(&mine));
        ++turn;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  CHECK(turn == kThreads * kTurns);
}

}  // namespace
}  // namespace strata

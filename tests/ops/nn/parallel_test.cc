#include "ops/parallel.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <set>
#include <thread>
#include <vector>

namespace strata::ops {
namespace {

TEST_CASE("each index runs exactly once, for every team and length", "[ops]") {
  for (size_t threads : {1, 2, 3, 5}) {
    const auto team = MakeParallel(threads);
    REQUIRE(team->threads() == threads);
    for (size_t n : {0, 1, 2, 3, 17, 1000}) {
      std::vector<std::atomic<int>> runs(n);
      team->For(n, [&](size_t i) { runs[i].fetch_add(1); });
      for (size_t i = 0; i < n; ++i) REQUIRE(runs[i].load() == 1);
    }
  }
}

TEST_CASE("results of many short loops are seen by the caller", "[ops]") {
  const auto team = MakeParallel(3);
  std::vector<uint64_t> cells(16, 0);  // plain memory: For must order it
  for (int loop = 0; loop < 20000; ++loop) {
    team->For(cells.size(), [&](size_t i) { ++cells[i]; });
  }
  for (uint64_t c : cells) REQUIRE(c == 20000);
}

TEST_CASE("loops follow each other with other lengths and bodies", "[ops]") {
  const auto team = MakeParallel(2);
  uint64_t expected = 0;
  std::atomic<uint64_t> sum{0};
  for (uint64_t n = 0; n < 2000; ++n) {
    team->For(n % 37, [&](size_t i) { sum.fetch_add(n * 100 + i); });
    for (uint64_t i = 0; i < n % 37; ++i) expected += n * 100 + i;
    REQUIRE(sum.load() == expected);
  }
}

TEST_CASE("more than one thread takes part", "[ops]") {
  const auto team = MakeParallel(2);
  // Both bodies wait for each other: with one thread this would never end.
  std::atomic<int> arrived{0};
  team->For(2, [&](size_t) {
    arrived.fetch_add(1);
    while (arrived.load() < 2) std::this_thread::yield();
  });
  REQUIRE(arrived.load() == 2);
}

TEST_CASE("a loop ends only when its last body has ended", "[ops]") {
  const auto team = MakeParallel(2);
  const auto caller = std::this_thread::get_id();
  for (int loop = 0; loop < 20; ++loop) {
    std::atomic<bool> helper_began{false}, caller_ended{false};
    bool helper_ended = false;
    team->For(2, [&](size_t) {
      if (std::this_thread::get_id() == caller) {
        while (!helper_began.load()) std::this_thread::yield();
        caller_ended.store(true);
        return;
      }
      helper_began.store(true);
      while (!caller_ended.load()) std::this_thread::yield();
      // Long enough for a caller that does not wait to be back in the test.
      std::atomic<uint64_t> work{0};
      while (work.fetch_add(1, std::memory_order_relaxed) < 300000) {
      }
      helper_ended = true;
    });
    REQUIRE(helper_ended);
  }
}

TEST_CASE("teams start and end in any state", "[ops]") {
  for (int i = 0; i < 50; ++i) {
    const auto team = MakeParallel(4);
    std::atomic<int> n{0};
    if (i % 2 == 0) team->For(3, [&](size_t) { n.fetch_add(1); });
    REQUIRE(n.load() == (i % 2 == 0 ? 3 : 0));
  }
}

}  // namespace
}  // namespace strata::ops

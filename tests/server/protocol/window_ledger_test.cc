#include "server/protocol/window_ledger.h"

#include <catch2/catch.hpp>
#include <random>
#include <set>
#include <utility>

#include "tests/seed.h"

namespace strata::server {
namespace {

TEST_CASE("each window is new once, in any order", "[dedup][seeds]") {
  for (const uint64_t seed : Seeds("window_ledger", 0, 50)) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    WindowLedger ledger;
    std::set<std::pair<uint64_t, uint64_t>> seen;
    for (int i = 0; i < 500; ++i) {
      const uint64_t task = 3 + random() % 5, window = random() % 40;
      const bool fresh = seen.insert({task, window}).second;
      REQUIRE(ledger.Check(TaskId(task), window) ==
              (fresh ? WindowVerdict::kNew : WindowVerdict::kRepeated));
      if (fresh) ledger.Record(TaskId(task), window);
      if (i % 50 == 0) {
        auto copy = WindowLedger::Parse(ledger.Serialize());
        REQUIRE(copy.ok());
        REQUIRE(*copy == ledger);
      }
    }
    REQUIRE(ledger.applied() == seen.size());
  }
}

// Every order of what can happen to two tasks: windows that come late, again, or after their task
// is closed, and what another shard knows.
void AfterEachOrder(const WindowLedger& ledger, int left) {
  const auto read = WindowLedger::Parse(ledger.Serialize());
  REQUIRE(read.ok());
  REQUIRE(*read == ledger);
  if (left == 0) return;
  for (uint64_t task = 0; task < 2; ++task) {
    for (uint64_t window = 0; window < 3; ++window) {
      WindowLedger next = ledger;
      next.Record(TaskId(task), window);
      REQUIRE(next.applied() == ledger.applied() + 1);
      REQUIRE(next.Check(TaskId(task), window) != WindowVerdict::kNew);
      AfterEachOrder(next, left - 1);
    }
    WindowLedger closed = ledger, merged = ledger, other;
    closed.CloseBelow(TaskId(task + 1));
    REQUIRE(closed.Check(TaskId(task), 2) == WindowVerdict::kClosed);
    AfterEachOrder(closed, left - 1);
    other.Record(TaskId(task), 1);
    other.CloseBelow(TaskId(task));
    merged.Merge(other);
    AfterEachOrder(merged, left - 1);
  }
}

TEST_CASE("whatever comes in whatever order, a ledger is read as it was written", "[dedup]") {
  AfterEachOrder(WindowLedger(), 4);
}

TEST_CASE("a window of a closed task is counted, and nothing is kept of it", "[dedup]") {
  WindowLedger ledger;
  ledger.CloseBelow(TaskId(5));
  for (const uint64_t window : {0, 2}) ledger.Record(TaskId(4), window);
  CHECK(ledger.applied() == 2);
  CHECK(ledger.tasks() == 0);
  CHECK(ledger.Check(TaskId(4), 1) == WindowVerdict::kClosed);
}

TEST_CASE("closed tasks are refused and cost nothing", "[dedup]") {
  WindowLedger ledger;
  ledger.Record(TaskId(1), 0);
  ledger.Record(TaskId(5), 0);
  ledger.CloseBelow(TaskId(5));
  WindowLedger open;
  open.Record(TaskId(5), 0);
  REQUIRE(ledger.Serialize().size() == open.Serialize().size());
  REQUIRE(ledger.Check(TaskId(1), 0) == WindowVerdict::kClosed);
  REQUIRE(ledger.Check(TaskId(4), 9) == WindowVerdict::kClosed);
  REQUIRE(ledger.Check(TaskId(5), 0) == WindowVerdict::kRepeated);
  ledger.CloseBelow(TaskId(2));
  REQUIRE(ledger.closed_below() == TaskId(5));
  REQUIRE(ledger.Check(TaskId(5), 2 + WindowLedger::kMaxAhead) == WindowVerdict::kTooFar);
}

TEST_CASE("ledgers of two shards merge to their union", "[dedup]") {
  WindowLedger a, b;
  for (const uint64_t w : {0, 1, 4}) a.Record(TaskId(2), w);
  for (const uint64_t w : {0, 2, 3}) b.Record(TaskId(2), w);
  b.Record(TaskId(9), 0);
  a.Merge(b);
  for (uint64_t w = 0; w < 5; ++w) REQUIRE(a.Check(TaskId(2), w) == WindowVerdict::kRepeated);
  REQUIRE(a.Check(TaskId(2), 5) == WindowVerdict::kNew);
  REQUIRE(a.Check(TaskId(9), 0) == WindowVerdict::kRepeated);
}

TEST_CASE("damaged ledgers are told, at every length", "[dedup]") {
  WindowLedger ledger;
  ledger.Record(TaskId(2), 0);
  ledger.Record(TaskId(2), 5);
  ledger.Record(TaskId(7), 1);
  const std::string bytes = ledger.Serialize();
  for (size_t n = 0; n < bytes.size(); ++n) {
    REQUIRE_FALSE(WindowLedger::Parse(bytes.substr(0, n)).ok());
  }
  REQUIRE_FALSE(WindowLedger::Parse(bytes + "x").ok());
  std::string huge = bytes;
  huge[40 + 7] = '\x7f';  // the first task's count of windows ahead
  REQUIRE_FALSE(WindowLedger::Parse(huge).ok());
}

// A client that takes a new task for every window, and one task that stays open for long.
TEST_CASE("a ledger is bounded, whatever tasks are named", "[window_ledger]") {
  WindowLedger ledger;
  size_t taken = 0;
  for (uint64_t i = 0; i < 3 * WindowLedger::kMaxFar; ++i) {
    const TaskId task((uint64_t{1} << 60) + 7 * i);
    if (ledger.Check(task, 0) != WindowVerdict::kNew) {
      REQUIRE(ledger.Check(task, 0) == WindowVerdict::kTooFar);
      continue;
    }
    ledger.Record(task, 0);
    ++taken;
  }
  CHECK(taken == WindowLedger::kMaxFar);
  CHECK(ledger.tasks() == WindowLedger::kMaxFar);
  // Those that it has go on, and the job's own tasks do not need their room.
  const TaskId first(uint64_t{1} << 60);
  CHECK(ledger.Check(first, 0) == WindowVerdict::kRepeated);
  CHECK(ledger.Check(first, 1) == WindowVerdict::kNew);
  CHECK(ledger.Check(TaskId(~uint64_t{0}), 0) == WindowVerdict::kTooFar);
  for (uint64_t task = 0; task < WindowLedger::kMaxSpread; ++task) {
    REQUIRE(ledger.Check(TaskId(task), 0) == WindowVerdict::kNew);
    ledger.Record(TaskId(task), 0);
  }
  CHECK(ledger.Check(TaskId(WindowLedger::kMaxSpread), 0) == WindowVerdict::kTooFar);
  CHECK(ledger.tasks() == WindowLedger::kMaxFar + WindowLedger::kMaxSpread);
  ledger.CloseBelow(TaskId(10));
  CHECK(ledger.Check(TaskId(WindowLedger::kMaxSpread), 0) == WindowVerdict::kNew);
  const auto read = WindowLedger::Parse(ledger.Serialize());
  REQUIRE(read.ok());
  CHECK(*read == ledger);
}

}  // namespace
}  // namespace strata::server

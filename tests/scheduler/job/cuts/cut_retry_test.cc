// Cuts that fail: which are tried again, when, and which are given up.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "scheduler/job/cuts/cut_coordinator.h"
#include "tests/scheduler/job/cuts/cut_words.h"

namespace strata::scheduler {
namespace {

using Outcome = CutCoordinator::Outcome;

CutReport Fails(uint64_t cut, absl::StatusCode code) {
  CutReport report = Word(cut, CutReport::FAILED);
  report.set_code(static_cast<uint32_t>(code));
  return report;
}

// The word of server 0 on the only cut that is asked for; when the next try is due, from then on.
int64_t Try(CutCoordinator& cuts, uint64_t generation, int64_t now, const CutReport& word) {
  cuts.Plan(generation, 100, true, now);
  REQUIRE(cuts.book().pending_size() == 1);
  CutReport said = word;
  said.set_cut(cuts.book().pending(0).cut());
  cuts.Report(0, said);
  const auto results = cuts.Settle(now);
  REQUIRE(results.size() == 1);
  CHECK(results[0].server == 0u);
  CHECK(results[0].message == "disk full");
  CHECK(cuts.Idle());
  return results[0].retry_ms;
}

const CutReport kFull = Fails(0, absl::StatusCode::kResourceExhausted);
const CutReport kDenied = Fails(0, absl::StatusCode::kPermissionDenied);

// Somebody ends the run: what there is, is to be kept now.
TEST_CASE("who asks for a cut does not wait for the next try of the last one", "[scheduler]") {
  CutConfig config = Config();
  config.bsp = GENERATE(true, false);
  CutCoordinator cuts(config, {});
  cuts.WantLast(100);
  constexpr int64_t kNow = 5'000'000;
  cuts.Plan(1, 100, true, kNow);
  REQUIRE(cuts.book().pending_size() == 1);
  cuts.Writing(1, Manifest());
  REQUIRE(cuts.WritingFailed(1, absl::ResourceExhaustedError("full"), kNow).retry_ms > 0);
  cuts.Plan(1, 100, true, kNow);
  REQUIRE(cuts.Idle());
  cuts.WantManual();
  cuts.Plan(1, 100, true, kNow);
  REQUIRE(cuts.book().pending_size() == 1);
  CHECK(cuts.book().pending(0).manual());
  CHECK(cuts.book().pending(0).last());
}

TEST_CASE("a cut that the job needs waits for as long as what is in the way may pass",
          "[scheduler]") {
  const bool bsp = GENERATE(true, false), last = GENERATE(true, false);
  if (!bsp && !last) return;
  CutConfig config = Config();
  config.every_steps = 0;
  config.bsp = bsp;
  CutCoordinator cuts(config, {});
  if (last) {
    cuts.WantLast(100);
  } else {
    cuts.WantAt(100);
  }
  int64_t now = 0, average = CutCoordinator::kFirstRetryMs;
  uint64_t number = 0;
  for (int i = 0; i < 200; ++i) {
    const int64_t wait = Try(cuts, 1, now, kFull);
    CHECK(wait >= average / 2);
    CHECK(wait < average * 3 / 2);
    average = std::min(CutCoordinator::kMostRetryMs, average * 2);
    REQUIRE_FALSE(cuts.GivenUp());
    CHECK(cuts.book().next_cut() == ++number + 1);  // each try has a number of its own
    cuts.Plan(1, 100, true, now + wait - 1);
    REQUIRE(cuts.Idle());
    now += wait;
  }
  cuts.Plan(1, 100, true, now);
  REQUIRE(cuts.book().pending_size() == 1);
  const uint64_t cut = cuts.book().pending(0).cut();
  cuts.Report(0, Word(cut, CutReport::DONE, 0, 3));
  cuts.Report(1, Word(cut, CutReport::DONE, 4, 7));
  REQUIRE(cuts.Settle(now).at(0).outcome == Outcome::kDone);
  cuts.Complete(cut, At(100, "/c/100"));
  CHECK(cuts.book().retries() == 0);
  CHECK((cuts.Last() != nullptr) == last);
}

TEST_CASE("a cut that the job needs is given up after three causes in a row that no try can mend",
          "[scheduler]") {
  CutConfig config = Config();
  config.bsp = GENERATE(true, false);
  CutCoordinator cuts(config, {});
  cuts.WantLast(100);
  int64_t now = 0;
  for (int i = 0; i < 2; ++i) now += Try(cuts, 1, now, kDenied);
  now += Try(cuts, 1, now, kFull);  // so somebody gave the right
  for (int i = 0; i < 2; ++i) now += Try(cuts, 1, now, kDenied);
  REQUIRE_FALSE(cuts.GivenUp());
  Try(cuts, 1, now, kDenied);
  REQUIRE(cuts.GivenUp());
  now += 10 * CutCoordinator::kMostRetryMs;
  cuts.Plan(1, 100, true, now);
  CHECK(cuts.Idle());
}

TEST_CASE("async: a last cut that is refused is begun anew, however often", "[scheduler]") {
  CutConfig config = Config();
  config.bsp = false;
  CutCoordinator cuts(config, {});
  cuts.WantLast(0);
  int64_t now = 0;
  for (int i = 0; i < 20; ++i) now += Try(cuts, 1, now, Word(0, CutReport::REFUSED));
  CHECK_FALSE(cuts.GivenUp());
}

TEST_CASE("bsp: a cut that servers are past will never be", "[scheduler]") {
  CutCoordinator cuts(Config(), {});
  cuts.WantLast(100);
  int64_t now = 0;
  for (int i = 0; i < 3; ++i) now += Try(cuts, 1, now, Word(0, CutReport::REFUSED));
  CHECK(cuts.GivenUp());
}

TEST_CASE("of several causes one that no try can mend is told first", "[scheduler]") {
  CutCoordinator cuts(Config(), {});
  cuts.WantLast(100);
  cuts.Plan(1, 100, true, 0);
  CutReport word = kFull;
  word.set_cut(1);
  cuts.Report(0, word);
  word = kDenied;
  word.set_cut(1);
  word.set_message("no right");
  cuts.Report(1, word);
  const auto results = cuts.Settle(0);
  REQUIRE(results.size() == 1);
  CHECK(results[0].message == "no right");
  CHECK(results[0].server == 1u);
  CHECK_FALSE(results[0].passes);
}

TEST_CASE("tries of many jobs come at different moments", "[scheduler]") {
  std::set<int64_t> waits;
  for (uint64_t job = 0; job < 100; ++job) {
    CutConfig config = Config();
    config.spread = job;
    CutCoordinator cuts(config, {});
    cuts.WantLast(100);
    waits.insert(Try(cuts, 1, 0, kFull));
  }
  CHECK(waits.size() > 80);
}

TEST_CASE("a pause before a retry does not outlast the process that began it", "[scheduler]") {
  constexpr int64_t kMorning = 1'700'000'000'000;
  CutCoordinator cuts(Config(), {});
  cuts.WantLast(100);
  Try(cuts, 1, kMorning, kDenied);
  cuts.Plan(1, 100, true, kMorning);
  REQUIRE(Steps(cuts).empty());
  // The clock was set back before the next scheduler started.
  CutCoordinator next(Config(), cuts.book());
  next.Plan(1, 100, true, kMorning - 3'600'000);
  REQUIRE(Steps(next) == std::vector<uint64_t>{100});
  REQUIRE(next.book().failures() == 1);  // of three
}

}  // namespace
}  // namespace strata::scheduler

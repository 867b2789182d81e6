// Cuts of asynchronous jobs: one at a time, each under a number of its own, and none stands in for
// another.
#include <catch2/catch.hpp>
#include <cstdint>

#include "absl/status/status.h"
#include "scheduler/job/cuts/cut_coordinator.h"
#include "tests/scheduler/job/cuts/cut_words.h"

namespace strata::scheduler {
namespace {

using Outcome = CutCoordinator::Outcome;

CutConfig Async() {
  CutConfig config = Config();
  config.bsp = false;
  return config;
}

CutReport Taken(uint64_t cut, uint32_t server, uint64_t window_of_lane_1 = 4) {
  CutReport report = Word(cut, CutReport::DONE, 4 * server, 4 * server + 3);
  for (uint32_t lane = 0; lane < 2; ++lane) {
    LanePosition* position = report.add_lanes();
    position->set_lane(lane);
    position->set_task(lane);
    position->set_next_window(lane == 0 ? 3 : window_of_lane_1);
  }
  return report;
}

TEST_CASE("async takes one barrier at a time, and an aborted one anew under another number",
          "[scheduler]") {
  CutConfig config = Config();
  config.bsp = false;
  CutCoordinator cuts(config, {});
  cuts.Plan(1, 9, true, 0);
  REQUIRE(cuts.Idle());
  cuts.Plan(1, 25, true, 0);
  REQUIRE(cuts.book().pending_size() == 1);
  REQUIRE(cuts.book().pending(0).step() == 0);
  cuts.Plan(1, 35, true, 0);
  REQUIRE(cuts.book().pending_size() == 1);
  cuts.Report(0, Word(1, CutReport::DONE, 0, 3));
  const auto dropped = cuts.Abort();
  REQUIRE(dropped.size() == 1);
  REQUIRE(dropped[0].files.size() == 1);  // to be removed
  cuts.Plan(1, 26, false, 0);             // a lane has no host
  REQUIRE(cuts.Idle());
  cuts.Plan(1, 26, true, 0);
  REQUIRE(cuts.book().pending(0).cut() == 2);
  cuts.Complete(2, At(2, "/c/2"));
  cuts.Plan(1, 27, true, 0);
  REQUIRE(cuts.Idle());
  cuts.WantLast(0);
  cuts.Plan(1, 27, true, 0);
  REQUIRE(cuts.book().pending(0).last());
  REQUIRE(cuts.Last() == nullptr);  // the one before it has not all windows
  cuts.Complete(cuts.book().pending(0).cut(), At(3, "/c/3"));
  REQUIRE(cuts.Last() != nullptr);
  REQUIRE(cuts.Last()->folder() == "/c/3");
  cuts.Plan(1, 27, true, 0);
  REQUIRE(cuts.Idle());  // the last is the last
}

TEST_CASE("async: nothing stands in for a last cut that failed or waits for a host",
          "[scheduler]") {
  CutConfig config = Config();
  config.bsp = false;
  CutCoordinator cuts(config, {});
  cuts.Complete(0, At(1, "/c/1"));
  REQUIRE(cuts.Last() == nullptr);  // training goes on
  cuts.WantLast(0);
  cuts.Plan(1, 5, false, 0);  // a lane has no host
  REQUIRE(cuts.Idle());
  REQUIRE(cuts.Last() == nullptr);
  cuts.Plan(1, 5, true, 0);
  cuts.Writing(cuts.book().pending(0).cut(), {});
  const auto full = absl::ResourceExhaustedError("disk full");
  const auto failed = cuts.WritingFailed(cuts.book().pending(0).cut(), full, 1000);
  CHECK(failed.passes);
  CHECK_FALSE(failed.server.has_value());
  const int64_t due = 1000 + failed.retry_ms;
  cuts.Plan(1, 5, true, due - 1);
  REQUIRE(cuts.Idle());
  REQUIRE(cuts.Last() == nullptr);
  cuts.Plan(1, 5, true, due);
  REQUIRE(cuts.book().pending(0).last());
}

TEST_CASE("a last cut that is written when training goes on again is the last no more",
          "[scheduler]") {
  CutConfig config = Config();
  config.bsp = false;
  CutCoordinator cuts(config, {});
  cuts.WantLast(0);
  cuts.Plan(1, 30, true, 0);
  const uint64_t cut = cuts.book().pending(0).cut();
  cuts.Writing(cut, {});
  cuts.Abort();
  cuts.TrainingAgain();
  cuts.Complete(cut, At(cut, "/c/1"));
  REQUIRE(cuts.Last() == nullptr);
  cuts.Plan(2, 10, true, 0);  // periodic ones go on
  REQUIRE(cuts.book().pending_size() == 1);
  REQUIRE(cuts.book().pending(0).periodic());
}

// Server 0 fails the cut before server 1 has all marks. Until server 1 lets go, no window moves
// that would make another cut due.
TEST_CASE("async: a cut that one server fails is over everywhere at once", "[scheduler]") {
  const auto state = GENERATE(CutReport::FAILED, CutReport::REFUSED);
  CutCoordinator cuts(Async(), {});
  REQUIRE(cuts.OverThrough() == 0);
  cuts.Plan(1, 10, true, 0);
  REQUIRE(cuts.book().pending(0).cut() == 1);
  REQUIRE(cuts.OverThrough() == 0);
  cuts.Report(0, Word(1, state));
  const auto results = cuts.Settle(0);
  REQUIRE(results.size() == 1);
  REQUIRE(results[0].message == "disk full");
  REQUIRE(cuts.Idle());
  REQUIRE(cuts.OverThrough() == 1);
  cuts.Report(1, Taken(1, 1));  // too late
  REQUIRE(cuts.Settle(0).empty());
  cuts.Plan(1, 30, true, CutCoordinator::kPauseMs);
  REQUIRE(cuts.book().pending(0).cut() == 2);
  REQUIRE(cuts.OverThrough() == 1);
}

// Else a server that restarts holds pushes with the tag of a cut that was listed long ago.
TEST_CASE("async: complete cuts are over as well", "[scheduler]") {
  CutCoordinator cuts(Async(), {});
  cuts.Plan(1, 10, true, 0);
  cuts.Report(0, Taken(1, 0));
  REQUIRE(cuts.Settle(0).empty());
  REQUIRE(cuts.OverThrough() == 0);
  cuts.Report(1, Taken(1, 1));
  REQUIRE(cuts.Settle(0).at(0).outcome == Outcome::kDone);
  cuts.Writing(1, {});
  REQUIRE(cuts.OverThrough() == 1);
  cuts.Complete(1, At(1, "/c/1"));
  REQUIRE(cuts.OverThrough() == 1);
}

TEST_CASE("async: a restart of the scheduler forgets no cut that is over, and uses no number twice",
          "[scheduler]") {
  CutCoordinator cuts(Async(), {});
  cuts.Plan(1, 10, true, 0);
  cuts.Report(0, Word(1, CutReport::FAILED));
  cuts.Settle(0);
  CutCoordinator next(Async(), cuts.book());
  REQUIRE(next.OverThrough() == 1);
  next.Plan(1, 20, true, 0);
  REQUIRE(next.book().pending(0).cut() == 2);
  next.Report(0, Taken(2, 0));
  CutCoordinator last(Async(), next.book());
  REQUIRE(last.OverThrough() == 1);  // cut 2 is pending still
  last.Report(1, Taken(2, 1));
  REQUIRE(last.Settle(0).empty());  // what server 0 said is forgotten
  last.Report(0, Taken(2, 0));
  REQUIRE(last.Settle(0).at(0).outcome == Outcome::kDone);
}

TEST_CASE("async: files that disagree on where lanes stand make no checkpoint", "[scheduler]") {
  CutCoordinator cuts(Async(), {});
  cuts.Plan(1, 10, true, 0);
  cuts.Report(0, Taken(1, 0));
  cuts.Report(1, Taken(1, 1, /*window_of_lane_1=*/5));
  const auto results = cuts.Settle(0);
  REQUIRE(results.at(0).outcome == Outcome::kFailed);
  REQUIRE(results.at(0).message == "servers disagree on where lanes stand at cut 1");
  REQUIRE(cuts.OverThrough() == 1);
}

// Lanes that wait for one slow lane would else do nothing but wait.
TEST_CASE("async: a cut that was refused is wanted still, after a pause", "[scheduler]") {
  CutCoordinator cuts(Async(), {});
  cuts.WantManual();
  cuts.Plan(1, 10, true, 0);
  cuts.Report(0, Word(1, CutReport::REFUSED));
  cuts.Settle(0);
  cuts.Plan(1, 12, true, CutCoordinator::kPauseMs - 1);
  REQUIRE(cuts.Idle());
  cuts.Plan(1, 12, true, CutCoordinator::kPauseMs);
  REQUIRE(cuts.book().pending_size() == 1);
  REQUIRE(cuts.book().pending(0).cut() == 2);
  REQUIRE(cuts.book().pending(0).manual());
  REQUIRE(cuts.book().pending(0).periodic());
}

}  // namespace
}  // namespace strata::scheduler

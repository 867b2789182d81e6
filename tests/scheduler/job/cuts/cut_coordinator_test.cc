#include "scheduler/job/cuts/cut_coordinator.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace strata::scheduler {
namespace {

using Outcome = CutCoordinator::Outcome;

CutConfig Config() {
  return {.bsp = true,
          .every_steps = 10,
          .directory = "/c",
          .keep = 2,
          .total_steps = 100,
          .servers = 2,
          .partitions = 8};
}

CutReport Word(uint64_t cut, CutReport::State state, uint32_t first = 0, uint32_t last = 7) {
  CutReport report;
  report.set_cut(cut);
  report.set_state(state);
  report.set_message("disk full");
  if (state == CutReport::DONE) {
    CheckpointFile* file = report.add_files();
    file->set_name("f" + std::to_string(first));
    file->set_first_partition(first);
    file->set_last_partition(last);
  }
  return report;
}

std::vector<uint64_t> Steps(const CutCoordinator& cuts) {
  std::vector<uint64_t> steps;
  for (const CutRecord& c : cuts.book().pending()) steps.push_back(c.step());
  return steps;
}

CheckpointRecord At(uint64_t step, const std::string& folder) {
  CheckpointRecord record;
  record.set_step(step);
  record.set_folder(folder);
  return record;
}

TEST_CASE("multiples are asked for ahead and re-issued until done", "[scheduler]") {
  CutCoordinator cuts(Config(), {});
  cuts.Plan(1, 0, true, 0);
  REQUIRE(Steps(cuts) == std::vector<uint64_t>{10, 20});
  cuts.Plan(1, 10, true, 0);  // the clock is there; 10 is not done yet
  REQUIRE(Steps(cuts) == std::vector<uint64_t>{10, 20, 30});
  REQUIRE(cuts.book().pending(0).folder() == "/c/step-000000000010");
  const uint64_t cut = cuts.book().pending(0).cut();
  cuts.Report(0, Word(cut, CutReport::DONE, 0, 3));
  REQUIRE(cuts.Settle(0).empty());  // the other server has not spoken
  cuts.Report(1, Word(cut, CutReport::DONE, 4, 7));
  const auto results = cuts.Settle(0);
  REQUIRE(results.size() == 1);
  REQUIRE(results[0].outcome == Outcome::kDone);
  REQUIRE(results[0].files.size() == 2);
  REQUIRE(cuts.Settle(0).empty());  // once
  cuts.Complete(cut, At(10, "/c/step-000000000010"));
  REQUIRE(Steps(cuts) == std::vector<uint64_t>{20, 30});
  REQUIRE(cuts.NewestOnDisk()->step() == 10);
  cuts.Plan(1, 9, true, 0);  // a roll-back: what is complete is not cut again
  REQUIRE(Steps(cuts) == std::vector<uint64_t>{20, 30});
}

TEST_CASE("the last multiple is left to the last cut", "[scheduler]") {
  CutCoordinator cuts(Config(), {});
  cuts.Plan(1, 95, true, 0);
  REQUIRE(Steps(cuts).empty());
  cuts.WantLast(100);
  cuts.Plan(1, 100, true, 0);
  REQUIRE(Steps(cuts) == std::vector<uint64_t>{100});
  REQUIRE(cuts.book().pending(0).last());
}

// Each of them would make the next wait longer, and the end of the job wait for all.
TEST_CASE("periodic cuts are left out while earlier ones wait for their files", "[scheduler]") {
  constexpr int kMost = CutCoordinator::kMostUnfinished;
  CutConfig config = Config();
  config.bsp = GENERATE(true, false);
  CAPTURE(config.bsp);
  CutCoordinator cuts(config, {});
  cuts.Plan(1, 10, true, 0, kMost);
  REQUIRE(cuts.Idle());
  cuts.WantManual();  // what somebody waits for is not left out
  cuts.Plan(1, 10, true, 0, kMost);
  REQUIRE(cuts.book().pending_size() == 1);
  REQUIRE(cuts.book().pending(0).manual());
  cuts.Writing(cuts.book().pending(0).cut(), Manifest());
  cuts.Plan(1, 10, true, 0, kMost - 1);
  REQUIRE(cuts.book().pending_size() == 1);
  cuts.Complete(1, At(config.bsp ? 14 : 1, "/c/1"));
  cuts.Plan(1, 10, true, 0, kMost - 1);
  REQUIRE_FALSE(cuts.Idle());
  REQUIRE(cuts.book().pending(0).periodic());
}

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

TEST_CASE("a manual cut that is refused goes further ahead", "[scheduler]") {
  CutConfig config = Config();
  config.every_steps = 0;
  CutCoordinator cuts(config, {});
  cuts.WantManual();
  cuts.Plan(1, 7, true, 0);
  REQUIRE(Steps(cuts) == std::vector<uint64_t>{11});
  cuts.Report(0, Word(1, CutReport::REFUSED));
  REQUIRE(cuts.Settle(0).at(0).outcome == Outcome::kRefused);
  cuts.Plan(1, 40, true, 0);
  REQUIRE(Steps(cuts) == std::vector<uint64_t>{48});
  REQUIRE(cuts.book().pending(0).cut() == 2);  // numbers are never used again
  cuts.Report(1, Word(2, CutReport::REFUSED));
  cuts.Settle(0);
  cuts.Plan(1, 97, true, 0);
  REQUIRE(Steps(cuts) == std::vector<uint64_t>{100});  // never beyond the end
}

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

TEST_CASE("files that miss a partition make no checkpoint", "[scheduler]") {
  CutCoordinator cuts(Config(), {});
  cuts.Plan(1, 0, true, 0);
  cuts.Report(0, Word(1, CutReport::DONE, 0, 3));
  cuts.Report(1, Word(1, CutReport::DONE, 5, 7));
  const auto results = cuts.Settle(0);
  REQUIRE(results.at(0).outcome == Outcome::kFailed);
  REQUIRE(results.at(0).message == "no file holds partition 4");
  const auto file = [](const char* name, uint32_t first, uint32_t last) {
    CheckpointFile f;
    f.set_name(name);
    f.set_first_partition(first);
    f.set_last_partition(last);
    return f;
  };
  REQUIRE(WhatIsMissing({file("a", 0, 3), file("b", 4, 7)}, 8).empty());
  REQUIRE(WhatIsMissing({file("a", 0, 3), file("a", 4, 7)}, 8) == "two servers wrote a file a");
  REQUIRE(WhatIsMissing({}, 8) == "no file holds partition 0");
}

TEST_CASE("a restarted server's word is void", "[scheduler]") {
  CutCoordinator cuts(Config(), {});
  cuts.Plan(1, 0, true, 0);
  cuts.Report(0, Word(1, CutReport::DONE, 0, 3));
  cuts.ForgetServer(0);
  cuts.Report(1, Word(1, CutReport::DONE, 4, 7));
  REQUIRE(cuts.Settle(0).empty());
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

TEST_CASE("bsp: the last cut is that of the last step", "[scheduler]") {
  CutCoordinator cuts(Config(), {});
  cuts.Complete(0, At(90, "/c/90"));
  cuts.Complete(0, At(95, "/c/95"));
  REQUIRE(cuts.Last() == nullptr);
  cuts.WantLast(100);
  REQUIRE(cuts.Last() == nullptr);
  cuts.WantLast(95);  // the best, or the one that a worker stopped at
  REQUIRE(cuts.Last() != nullptr);
  REQUIRE(cuts.Last()->folder() == "/c/95");
}

std::vector<std::string> Folders(const std::vector<CheckpointRecord>& checkpoints) {
  std::vector<std::string> folders;
  for (const CheckpointRecord& c : checkpoints) folders.push_back(c.folder());
  return folders;
}

TEST_CASE("the newest are kept, and the best", "[scheduler]") {
  CutCoordinator cuts(Config(), {});
  for (uint64_t step : {10, 20, 30, 40}) cuts.Complete(0, At(step, "/c/" + std::to_string(step)));
  REQUIRE(Folders(cuts.TakeExcess(10)) == std::vector<std::string>{"/c/20"});
  REQUIRE(cuts.AtStep(10) != nullptr);
  REQUIRE(Folders(cuts.TakeExcess(0)) == std::vector<std::string>{"/c/10"});
  REQUIRE(Folders(cuts.TakeAfter(30)) == std::vector<std::string>{"/c/40"});
  cuts.Forget("/c/30");
  REQUIRE(cuts.NewestOnDisk() == nullptr);
}

TEST_CASE("what is being written survives a roll-back, the rest is dropped", "[scheduler]") {
  CutCoordinator cuts(Config(), {});
  cuts.Plan(1, 0, true, 0);
  Manifest manifest;
  manifest.set_step(10);
  cuts.Writing(1, manifest);
  REQUIRE(cuts.Abort().size() == 1);
  REQUIRE(Steps(cuts) == std::vector<uint64_t>{10});
  cuts.Plan(2, 0, true, 0);
  REQUIRE(Steps(cuts) == std::vector<uint64_t>{10, 20});  // not into the same folder twice
}

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

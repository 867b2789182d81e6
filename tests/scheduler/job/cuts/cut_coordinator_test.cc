#include "scheduler/job/cuts/cut_coordinator.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/scheduler/job/cuts/cut_words.h"

namespace strata::scheduler {
namespace {

using Outcome = CutCoordinator::Outcome;

std::vector<std::string> Folders(const std::vector<CheckpointRecord>& checkpoints) {
  std::vector<std::string> folders;
  for (const CheckpointRecord& c : checkpoints) folders.push_back(c.folder());
  return folders;
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

// A job that is fast for a while, or a scheduler that was away, had some refused: each checkpoint
// that somebody asks for later would wait for thousands of steps.
TEST_CASE("a manual cut that succeeds has the next one go less far ahead", "[scheduler]") {
  CutConfig config = Config();
  config.every_steps = 0;
  config.total_steps = 100'000;
  CutCoordinator cuts(config, {});
  cuts.WantManual();
  for (uint64_t cut = 1; cut <= 10; ++cut) {
    cuts.Plan(1, 7, true, 0);
    REQUIRE(Steps(cuts) == std::vector<uint64_t>{7 + (4u << (cut - 1))});
    cuts.Report(0, Word(cut, CutReport::REFUSED));
    REQUIRE(cuts.Settle(0).at(0).outcome == Outcome::kRefused);
  }
  for (uint64_t ahead : {4096, 2048, 1024, 512, 256, 128, 64, 32, 16, 8, 4, 4}) {
    cuts.WantManual();
    cuts.Plan(1, 50'000, true, 0);
    REQUIRE(Steps(cuts) == std::vector<uint64_t>{50'000 + ahead});
    const uint64_t cut = cuts.book().pending(0).cut();
    cuts.Complete(cut, At(ahead, "/c/" + std::to_string(cut)));
  }
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

}  // namespace
}  // namespace strata::scheduler

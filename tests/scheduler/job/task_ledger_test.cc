#include "scheduler/job/task_ledger.h"

#include <catch2/catch.hpp>
#include <random>
#include <set>

#include "scheduler/state/closed_tasks.h"
#include "tests/seed.h"

namespace strata::scheduler {
namespace {

std::vector<uint64_t> Held(const TaskLedger& ledger, uint32_t lane) {
  std::vector<uint64_t> tasks;
  for (const LedgerTask& t : ledger.held(lane)) tasks.push_back(t.task());
  return tasks;
}

LanePosition At(uint32_t lane, uint64_t task, uint64_t window) {
  LanePosition p;
  p.set_lane(lane);
  p.set_task(task);
  p.set_next_window(window);
  return p;
}

TEST_CASE("tasks are handed out ahead, never more than a fair share of what is left",
          "[scheduler]") {
  TaskLedger ledger = TaskLedger::Begin(7, 2);
  ledger.Dispatch({true, true}, 3);
  REQUIRE(Held(ledger, 0) == std::vector<uint64_t>{0, 2, 4});
  REQUIRE(Held(ledger, 1) == std::vector<uint64_t>{1, 3, 5});
  for (uint64_t task : {0, 1, 2, 3}) ledger.Close(task);
  // Three are left: two each at most, so that the last ones are not all with one lane.
  ledger.Dispatch({true, true}, 3);
  REQUIRE(Held(ledger, 0) == std::vector<uint64_t>{4, 6});
  REQUIRE(Held(ledger, 1) == std::vector<uint64_t>{5});
  REQUIRE(ledger.closed_below() == 4);
}

TEST_CASE("a dead worker's tasks are handed out again, first of all", "[scheduler]") {
  TaskLedger ledger = TaskLedger::Begin(10, 2);
  ledger.Dispatch({true, true}, 2);
  ledger.Close(1);
  ledger.Requeue(0);
  REQUIRE(Held(ledger, 0).empty());
  ledger.Dispatch({false, true}, 4);
  REQUIRE(Held(ledger, 1) == std::vector<uint64_t>{3, 0, 2, 4});
}

TEST_CASE("the watermark is below every open task", "[scheduler]") {
  TaskLedger ledger = TaskLedger::Begin(5, 1);
  ledger.Dispatch({true}, 5);
  ledger.Close(2);
  ledger.Close(1);
  ledger.Close(1);
  ledger.Close(99);
  REQUIRE(ledger.closed_below() == 0);
  REQUIRE(ledger.closed_count() == 2);
  ledger.Close(0);
  REQUIRE(ledger.closed_below() == 3);
  ledger.Close(3);
  ledger.Close(4);
  REQUIRE(ledger.AllClosed());
}

// Hosts of both lanes were silent for a while, and go on where they were when they are heard of
// again: lane 0 in the midst of task 4, although task 1 stands before it by now.
TEST_CASE("a cut takes no task for done because of its place before another", "[scheduler]") {
  TaskLedger ledger = TaskLedger::Begin(12, 2);
  ledger.Dispatch({true, true}, 3);  // lane 0: 0 2 4, lane 1: 1 3 5
  ledger.Close(0);
  ledger.Close(2);
  ledger.Requeue(0);
  ledger.Requeue(1);
  ledger.Dispatch({true, true}, 2);
  REQUIRE(Held(ledger, 0) == std::vector<uint64_t>{1, 4});
  ledger.BeginCut(1);
  CheckpointRecord cut;
  ledger.CutContents({At(0, 4, 3), At(1, 3, 0)}, cut);
  REQUIRE(ListClosedTasks(cut) == std::vector<uint64_t>{0, 2});
  TaskLedger again = TaskLedger::Resume(12, 1, cut);
  again.Dispatch({true}, 64);
  REQUIRE(Held(again, 0) == std::vector<uint64_t>{1, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  REQUIRE(again.held(0)[2].first_window() == 3);
}

TEST_CASE("a cut holds what was closed when it began, and where lanes stood in other tasks",
          "[scheduler]") {
  TaskLedger ledger = TaskLedger::Begin(12, 3);
  ledger.Dispatch({true, true, true}, 2);  // lane 0: 0 3, 1: 1 4, 2: 2 5
  ledger.Close(0);
  ledger.BeginCut(9);
  ledger.Close(1);                         // lane 1 before its mark, which nobody says
  ledger.Close(2);                         // lane 2 after its mark
  ledger.Dispatch({true, true, true}, 2);  // lane 0 gets 6, 1: 7, 2: 8
  CheckpointRecord cut;
  ledger.CutContents({At(0, 3, 5), At(1, 4, 0), At(2, 2, 3)}, cut);
  REQUIRE(ListClosedTasks(cut) == std::vector<uint64_t>{0});
  TaskLedger again = TaskLedger::Resume(12, 1, cut);
  again.Dispatch({true}, 64);
  REQUIRE(Held(again, 0) == std::vector<uint64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  std::vector<uint64_t> first_windows;
  for (const LedgerTask& t : again.held(0)) first_windows.push_back(t.first_window());
  REQUIRE(first_windows == std::vector<uint64_t>{0, 3, 5, 0, 0, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("a cut of a long job is as small as one of a short job", "[scheduler]") {
  constexpr uint64_t kTasks = 20000;
  TaskLedger ledger = TaskLedger::Begin(kTasks + 10, 2);
  for (uint64_t task = 0; task < kTasks; ++task) {
    if (task != kTasks - 5) ledger.Close(task);
  }
  ledger.BeginCut(1);
  CheckpointRecord cut;
  ledger.CutContents({At(0, kTasks + 3, 2), At(1, kTasks - 1, 1)}, cut);
  CHECK(cut.ByteSizeLong() < 60);
  CHECK(cut.lanes_size() == 1);  // the other lane's task is closed
  const std::vector<uint64_t> listed = ListClosedTasks(cut);
  CHECK(listed.size() == kTasks - 1);
  // As a manifest lists them, and back.
  CheckpointRecord again;
  SetClosedTasks({listed.begin(), listed.end()}, again);
  CHECK(again.closed_below() == kTasks - 5);
  CHECK(ListClosedTasks(again) == listed);
  *again.mutable_lanes() = cut.lanes();
  TaskLedger resumed = TaskLedger::Resume(kTasks + 10, 1, again);
  resumed.Dispatch({true}, 64);
  REQUIRE(Held(resumed, 0).size() == 11);
  CHECK(Held(resumed, 0)[0] == kTasks - 5);
}

TaskCounts Lines(uint64_t task, uint64_t examples, uint64_t bad_lines) {
  TaskCounts counts;
  counts.set_task(task);
  counts.set_examples(examples);
  counts.set_bad_lines(bad_lines);
  return counts;
}

TEST_CASE("a checkpoint's end is past all tasks that its shards may know windows of",
          "[scheduler]") {
  CheckpointRecord checkpoint;
  CHECK(TaskLedger::EndOf(checkpoint) == 0);
  checkpoint.add_lanes()->set_task(9);  // handed out: no window of it is known
  CHECK(TaskLedger::EndOf(checkpoint) == 0);
  checkpoint.set_closed_below(3);
  CHECK(TaskLedger::EndOf(checkpoint) == 3);
  checkpoint.add_closed_tasks(5);
  CHECK(TaskLedger::EndOf(checkpoint) == 6);
  LanePosition& begun = *checkpoint.add_lanes();
  begun.set_task(7);
  begun.set_next_window(1);
  CHECK(TaskLedger::EndOf(checkpoint) == 8);
}

TEST_CASE("a cut counts the lines of what it holds closed, and each task counts once",
          "[scheduler]") {
  TaskLedger ledger = TaskLedger::Begin(12, 1);
  ledger.Close(Lines(0, 7, 1));
  ledger.Close(Lines(0, 7, 1));
  ledger.Close(Lines(99, 7, 1));
  ledger.BeginCut(1);
  ledger.Close(Lines(1, 6, 2));
  CHECK(ledger.record().examples() == 13);
  CHECK(ledger.record().bad_lines() == 3);
  CheckpointRecord cut;
  ledger.CutContents({At(0, 2, 3)}, cut);
  CHECK(cut.examples() == 7);
  CHECK(cut.bad_lines() == 1);
  ledger.EndCut();
  CHECK(ledger.record().cut_bad_lines() == 0);
  TaskLedger again = TaskLedger::Resume(12, 1, cut);
  CHECK(again.record().examples() == 7);
  again.Close(Lines(1, 6, 2));
  again.Close(Lines(0, 7, 1));
  CHECK(again.record().examples() == 13);
  CHECK(again.record().bad_lines() == 3);
}

TEST_CASE("no task is lost or kept open, whatever happens", "[scheduler][seeds]") {
  for (const uint64_t seed : Seeds("task_ledger", 0, 300)) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    const uint32_t lanes = 1 + random() % 5;
    const uint64_t total = random() % 200;
    TaskLedger ledger = TaskLedger::Begin(total, lanes);
    std::set<uint64_t> done;
    for (int i = 0; i < 5000 && !ledger.AllClosed(); ++i) {
      std::vector<bool> hosted(lanes, true);
      if (i < 300) {
        for (uint32_t l = 0; l < lanes; ++l) hosted[l] = random() % 3 > 0;
      }
      ledger.Dispatch(hosted, 1 + random() % 5);
      const uint32_t lane = random() % lanes;
      if (i < 300 && random() % 4 == 0) ledger.Requeue(lane);
      if (ledger.held(lane).size() > 0) {
        const uint64_t task = ledger.held(lane).begin()->task();
        REQUIRE(done.insert(task).second);  // never handed out again when done
        ledger.Close(task);
      }
      if (random() % 10 == 0) ledger = TaskLedger(ledger.record());  // a restart
      REQUIRE(ledger.closed_count() == done.size());
    }
    REQUIRE(ledger.AllClosed());
    REQUIRE(done.size() == total);
  }
}

}  // namespace
}  // namespace strata::scheduler

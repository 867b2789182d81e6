#include "scheduler/job/task_ledger.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "proto/core/mutation.h"
#include "scheduler/state/closed_tasks.h"

namespace strata::scheduler {
namespace {

void Erase(google::protobuf::RepeatedPtrField<LedgerTask>& list, uint64_t task) {
  for (int i = 0; i < list.size(); ++i) {
    if (list[i].task() == task) {
      list.erase(list.begin() + i);
      return;
    }
  }
}

}  // namespace

TaskLedger TaskLedger::Begin(uint64_t total, uint32_t lanes) {
  LedgerRecord record;
  record.set_total(total);
  for (uint32_t i = 0; i < lanes; ++i) record.add_lanes();
  return TaskLedger(std::move(record));
}

TaskLedger TaskLedger::Resume(uint64_t total, uint32_t lanes, const CheckpointRecord& checkpoint) {
  TaskLedger ledger = Begin(total, lanes);
  std::set<uint64_t> closed;
  for (uint64_t task : ListClosedTasks(checkpoint)) {
    if (task < total) closed.insert(task);
  }
  std::set<uint64_t> begun;
  for (const LanePosition& lane : checkpoint.lanes()) {
    // A task that two lanes held in turn goes on at the later window's lane; both are safe.
    if (lane.next_window() == 0 || lane.task() >= total || closed.count(lane.task()) > 0 ||
        !begun.insert(lane.task()).second) {
      continue;
    }
    LedgerTask* again = ledger.record_.add_again();
    again->set_task(lane.task());
    again->set_first_window(lane.next_window());
  }
  std::set<uint64_t> gaps;
  const uint64_t end = std::min(total, EndOf(checkpoint));
  for (uint64_t task = 0; task < end; ++task) {
    if (closed.count(task) > 0 || begun.count(task) > 0) continue;
    ledger.record_.add_again()->set_task(task);
  }
  std::sort(ledger.record_.mutable_again()->begin(), ledger.record_.mutable_again()->end(),
            [](const LedgerTask& a, const LedgerTask& b) { return a.task() < b.task(); });
  ledger.record_.set_fresh(end);
  for (uint64_t task : closed) ledger.Close(task);
  ledger.record_.set_examples(checkpoint.examples());
  ledger.record_.set_bad_lines(checkpoint.bad_lines());
  return ledger;
}

uint64_t TaskLedger::EndOf(const CheckpointRecord& checkpoint) {
  uint64_t end = checkpoint.closed_below();
  for (const uint64_t task : checkpoint.closed_tasks()) end = std::max(end, task + 1);
  for (const LanePosition& lane : checkpoint.lanes()) {
    if (lane.next_window() > 0) end = std::max(end, lane.task() + 1);
  }
  return end;
}

bool TaskLedger::IsClosed(uint64_t task) const {
  return task < record_.closed_below() ||
         std::binary_search(record_.closed().begin(), record_.closed().end(), task);
}

void TaskLedger::Hand(uint32_t lane, uint64_t task, uint64_t first_window) {
  LedgerLane& to = *record_.mutable_lanes(static_cast<int>(lane));
  LedgerTask* held = to.add_held();
  held->set_task(task);
  held->set_first_window(first_window);
}

bool TaskLedger::TakeNext(LedgerTask& task) {
  if (record_.again_size() > 0) {
    task = record_.again(0);
    record_.mutable_again()->erase(record_.again().begin());
    return true;
  }
  if (record_.fresh() >= record_.total()) return false;
  if (record_.fresh() >= record_.closed_below() + kMaxSpread) return false;
  task.Clear();
  task.set_task(record_.fresh());
  record_.set_fresh(record_.fresh() + 1);
  return true;
}

void TaskLedger::Dispatch(const std::vector<bool>& hosted, uint64_t ahead) {
  const uint64_t hosts = static_cast<uint64_t>(std::count(hosted.begin(), hosted.end(), true));
  if (hosts == 0) return;
  const uint64_t left = record_.total() - closed_count();
  const uint64_t fair = (left + hosts - 1) / hosts;
  const uint64_t limit = std::min({std::clamp<uint64_t>(ahead, 1, kMaxAhead), fair});
  for (uint64_t depth = 0; depth < limit; ++depth) {
    for (uint32_t lane = 0; lane < hosted.size(); ++lane) {
      if (!hosted[lane] || static_cast<uint64_t>(held(lane).size()) > depth) continue;
      LedgerTask next;
      if (!TakeNext(next)) return;
      Hand(lane, next.task(), next.first_window());
    }
  }
}

void TaskLedger::Close(uint64_t task) {
  TaskCounts none;
  none.set_task(task);
  Close(none);
}

void TaskLedger::Close(const TaskCounts& done) {
  const uint64_t task = done.task();
  if (task >= record_.total() || IsClosed(task)) return;
  record_.set_examples(record_.examples() + done.examples());
  record_.set_bad_lines(record_.bad_lines() + done.bad_lines());
  auto& closed = *record_.mutable_closed();
  const auto at = std::lower_bound(closed.begin(), closed.end(), task);
  const int index = static_cast<int>(at - closed.begin());
  closed.Add(task);
  std::rotate(closed.begin() + index, closed.end() - 1, closed.end());
  int run = 0;
  while (run < closed.size() && closed.Get(run) == record_.closed_below()) {
    record_.set_closed_below(record_.closed_below() + 1);
    ++run;
  }
  closed.erase(closed.begin(), closed.begin() + run);
  Erase(*record_.mutable_again(), task);
  if (STRATA_MUTATION("task.closed_is_held_on")) return;
  for (LedgerLane& lane : *record_.mutable_lanes()) Erase(*lane.mutable_held(), task);
}

void TaskLedger::Requeue(uint32_t lane) {
  auto& held = *record_.mutable_lanes(static_cast<int>(lane))->mutable_held();
  if (!STRATA_MUTATION("task.lost_with_its_lane")) {
    for (const LedgerTask& task : held) *record_.add_again() = task;
  }
  held.Clear();
  std::sort(record_.mutable_again()->begin(), record_.mutable_again()->end(),
            [](const LedgerTask& a, const LedgerTask& b) { return a.task() < b.task(); });
}

void TaskLedger::BeginCut(uint64_t cut) {
  record_.set_cut(cut);
  record_.set_cut_closed_below(record_.closed_below());
  *record_.mutable_cut_closed() = record_.closed();
  record_.set_cut_examples(record_.examples());
  record_.set_cut_bad_lines(record_.bad_lines());
}

void TaskLedger::EndCut() {
  record_.set_cut(0);
  record_.clear_cut_closed_below();
  record_.clear_cut_closed();
  record_.clear_cut_examples();
  record_.clear_cut_bad_lines();
}

void TaskLedger::CutContents(const std::vector<LanePosition>& marks, CheckpointRecord& out) const {
  const uint64_t below = record_.cut_closed_below();
  const auto closed = [&](uint64_t task) {
    return task < below ||
           std::binary_search(record_.cut_closed().begin(), record_.cut_closed().end(), task);
  };
  out.set_closed_below(below);
  *out.mutable_closed_tasks() = record_.cut_closed();
  out.set_examples(record_.cut_examples());
  out.set_bad_lines(record_.cut_bad_lines());
  for (const LanePosition& mark : marks) {
    const bool idle = mark.task() >= record_.total() || mark.next_window() == 0;
    if (!idle && !closed(mark.task())) *out.add_lanes() = mark;
  }
}

}  // namespace strata::scheduler

// JobMachine: which tasks the lanes of an asynchronous mode get, and what goes with a lane's host.
#include <algorithm>
#include <map>
#include <utility>

#include "proto/core/mutation.h"
#include "proto/job/job_plan.h"
#include "scheduler/job/machine.h"

namespace strata::scheduler {

// Most batches that a lane's own copy is ahead of what it pushed or exchanged last: a window, and
// no task has more than its lines.
uint64_t JobMachine::MostLocalSteps() const {
  const TrainingSpec& training = job().training();
  if (training.mode() == "async") return 0;
  uint64_t most = 0;
  for (const InputTask& task : Reads().tasks()) {
    most = std::max(most,
                    (uint64_t{task.lines()} + training.batch_size() - 1) / training.batch_size());
  }
  return std::min(most, BatchesPerWindow(training));
}

void JobMachine::LanesMoved(const std::vector<uint64_t>& before,
                            const std::vector<uint64_t>& after) {
  if (before == after) return;
  uint64_t lost = 0;
  for (uint32_t lane = 0; lane < lanes(); ++lane) {
    if (before[lane] == after[lane]) continue;
    if (before[lane] != 0 && !ledger_->held(lane).empty()) lost += MostLocalSteps();
    ledger_->Requeue(lane);
  }
  state_.set_lost_local_steps(state_.lost_local_steps() + lost);
  if (!STRATA_MUTATION("cut.outlives_a_host")) AbortCuts();
}

// Whether all lanes may work. Windows that servers have applied count at the fewest batches that
// they can stand for: a task's last one may be a single batch.
bool JobMachine::Warm() {
  const TrainingSpec& training = job().training();
  if (training.mode() != "downpour" || training.warm_start_steps() == 0 || state_.warm()) {
    return true;
  }
  const uint64_t n = BatchesPerWindow(training);
  const uint64_t most = Progress() * n;
  const uint64_t short_by = (ledger_->closed_count() + 1) * (n - 1);
  if (most < training.warm_start_steps() + short_by) return false;
  state_.set_warm(true);
  return true;
}

void JobMachine::CloseTasks(const WorkerJobReport& report) {
  std::map<uint64_t, const TaskCounts*> counts;
  for (const TaskCounts& c : report.task_counts()) counts[c.task()] = &c;
  for (uint64_t task : report.done_tasks()) {
    const auto it = counts.find(task);
    if (it == counts.end()) {
      ledger_->Close(task);
    } else {
      ledger_->Close(*it->second);
    }
  }
}

// Of all tasks together: of closed ones what they hold, of each other one what the worker that is
// furthest in it has read. So no line counts twice, whoever does a task again, and after whatever
// roll-back.
TaskCounts JobMachine::CountedLines() const {
  std::map<uint64_t, std::pair<uint64_t, uint64_t>> open;  // by task: examples, bad lines
  for (const WorkerView& view : workers_) {
    for (const TaskCounts& c : view.last.task_counts()) {
      if (ledger_->IsClosed(c.task())) continue;
      auto& [examples, bad_lines] = open[c.task()];
      examples = std::max(examples, c.examples());
      bad_lines = std::max(bad_lines, c.bad_lines());
    }
  }
  TaskCounts sum;
  sum.set_examples(ledger_->record().examples());
  sum.set_bad_lines(ledger_->record().bad_lines());
  for (const auto& [task, counts] : open) {
    sum.set_examples(sum.examples() + counts.first);
    sum.set_bad_lines(sum.bad_lines() + counts.second);
  }
  return sum;
}

void JobMachine::HandOutTasks(absl::Time now) {
  if (!ledger_) return;
  const std::vector<uint64_t> hosts = HostsOfLanes();
  std::vector<bool> hosted(lanes(), false);
  for (uint32_t lane = 0; lane < lanes(); ++lane) hosted[lane] = hosts[lane] != 0;
  constexpr uint64_t kLeastAhead = 2;
  if (!Warm()) {
    std::fill(hosted.begin() + 1, hosted.end(), false);
    ledger_->Dispatch(hosted, kLeastAhead);
  } else {
    // Tasks that one lane does in kAhead, from what all lanes did since the generation began.
    const double seconds = absl::ToDoubleSeconds(now - rate_since_);
    const double done = static_cast<double>(ledger_->closed_count() - rate_closed_);
    const double ahead = seconds > 0 ? done / seconds / lanes() * absl::ToDoubleSeconds(kAhead) : 0;
    ledger_->Dispatch(
        hosted, static_cast<uint64_t>(std::clamp(ahead, static_cast<double>(kLeastAhead),
                                                 static_cast<double>(TaskLedger::kMaxAhead))));
  }
  state_.set_all_tasks_done(ledger_->AllClosed());
}

}  // namespace strata::scheduler

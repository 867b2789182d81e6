// Async: which tasks are done, which lane has which, which are left.
#ifndef STRATA_SCHEDULER_JOB_TASK_LEDGER_H_
#define STRATA_SCHEDULER_JOB_TASK_LEDGER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "google/protobuf/repeated_field.h"
#include "proto/strata/control.pb.h"
#include "scheduler/state/state.pb.h"

namespace strata::scheduler {

// A pure state machine. Tasks 0 .. total-1 (epoch * tasks per epoch + index) are handed out in that
// order, ahead of need. A task that is handed out twice (its worker died) keeps its windows, so
// what was applied already is dropped as a repetition by the servers; handing out twice is safe,
// losing a task is not.
class TaskLedger {
 public:
  // Most tasks that a lane holds; the ledger's record is at most lanes * kMaxAhead tasks and the
  // closed ones between the oldest and the newest of them.
  static constexpr uint64_t kMaxAhead = 64;
  // Tasks beyond the oldest open one that are not handed out: bounds the closed ones kept singly.
  static constexpr uint64_t kMaxSpread = 1 << 16;

  static TaskLedger Begin(uint64_t total, uint32_t lanes);
  // From a checkpoint: what was closed, and where lanes stood in tasks that were not.
  static TaskLedger Resume(uint64_t total, uint32_t lanes, const CheckpointRecord& checkpoint);
  // One past the last task that the checkpoint's shards may know windows of.
  static uint64_t EndOf(const CheckpointRecord& checkpoint);
  explicit TaskLedger(LedgerRecord record) : record_(std::move(record)) {}

  // Fills up the lanes that `hosted` marks, to at most `ahead` tasks each and never more than a
  // fair share of what is open.
  void Dispatch(const std::vector<bool>& hosted, uint64_t ahead);
  // The task is done, and this is what it held. Unknown and repeated ones do nothing: counts of a
  // task that is done twice count once.
  void Close(const TaskCounts& done);
  // Its lines are counted already, or there are none.
  void Close(uint64_t task);
  // The lane's host is gone: its tasks are to be handed out again.
  void Requeue(uint32_t lane);

  bool IsClosed(uint64_t task) const;
  bool AllClosed() const { return record_.closed_below() >= record_.total(); }
  uint64_t closed_below() const { return record_.closed_below(); }
  uint64_t closed_count() const { return record_.closed_below() + record_.closed_size(); }
  uint64_t total() const { return record_.total(); }
  const google::protobuf::RepeatedPtrField<LedgerTask>& held(uint32_t lane) const {
    return record_.lanes(static_cast<int>(lane)).held();
  }

  // A cut is asked for: remember what is closed.
  void BeginCut(uint64_t cut);
  void EndCut();
  // What the cut surely holds, from where each lane marked it: every task closed at BeginCut, and
  // the windows before a mark of its task. Of other tasks nothing, though some were done between
  // the two: a lane whose host was silent and came back is not where the order of its tasks says.
  // They are handed out again after a roll-back, and what was applied of them is dropped. Lines are
  // counted of the tasks closed at BeginCut alone: who ends another task counts it from its
  // beginning.
  // REQUIRES: BeginCut was called.
  void CutContents(const std::vector<LanePosition>& marks, CheckpointRecord& out) const;

  const LedgerRecord& record() const { return record_; }

 private:
  void Hand(uint32_t lane, uint64_t task, uint64_t first_window);
  bool TakeNext(LedgerTask& task);

  LedgerRecord record_;
};

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_JOB_TASK_LEDGER_H_

// Which lines a lane reads at which step: a pure function of the job and its indexed input, never
// of the workers (promise P3).
//
// Let the input have T tasks with N lines in all. Epoch e orders the tasks by a permutation of
// (seed, e); the epoch's stream is the lines of the tasks in that order. Lane l of L takes stream
// positions [l N / L, (l + 1) N / L). Within a lane, each block of `buffer_lines` positions is
// permuted by (seed, e, l, block). The lane's batch at step s of the epoch is its permuted
// positions [s B, s B + B), cut at the lane's end (so batches at the end may be short or empty). An
// epoch has ceil(ceil(N / L) / B) steps. Without shuffling both permutations are the identity.
//
// Asynchronous modes hand out tasks instead: TaskId = e T + (index in the epoch's order). A task's
// lines are permuted in blocks of `buffer_lines` by (seed, TaskId, block), and its window w is
// permuted lines [w B, w B + B).
//
// Of a job that resumed with more files than before, the input is the new ones: epoch 0 begins
// behind the steps and TaskIds that earlier runs have done.
#ifndef STRATA_WORKER_DATA_INDEX_EPOCH_PLAN_H_
#define STRATA_WORKER_DATA_INDEX_EPOCH_PLAN_H_

#include <cstdint>
#include <vector>

#include "proto/core/ids.h"

namespace strata {

// Positions begin .. end-1.
struct LineRange {
  uint64_t begin = 0;
  uint64_t end = 0;

  uint64_t size() const { return end - begin; }
  friend bool operator==(const LineRange&, const LineRange&) = default;
};

struct EpochPlanOptions {
  uint32_t lanes = 1;             // >= 1
  uint32_t batch_size = 1;        // lines of a lane's batch, >= 1
  uint32_t buffer_lines = 16384;  // >= 1
  uint64_t seed = 1;
  bool shuffle = true;
  uint64_t steps_before = 0;  // of earlier runs, on other files
  uint64_t tasks_before = 0;
};

// Immutable; any thread.
class EpochPlan {
 public:
  using Options = EpochPlanOptions;

  // Where a global step (from 1) lies.
  struct StepPlace {
    uint64_t epoch = 0;
    uint64_t step = 0;  // of the epoch, from 0
  };
  // Where a TaskId lies.
  struct TaskPlace {
    uint64_t epoch = 0;
    uint64_t index = 0;  // in the epoch's order
  };

  // task_lines: lines of each task, in file order. REQUIRES: at least one line in all, and the
  // limits of Options.
  EpochPlan(std::vector<uint32_t> task_lines, const Options& options);

  uint64_t lines() const { return lines_; }
  uint64_t tasks() const { return task_lines_.size(); }
  uint32_t task_lines(uint64_t task) const { return task_lines_[task]; }
  const Options& options() const { return options_; }

  uint64_t StepsPerEpoch() const;
  // REQUIRES: step > steps_before.
  StepPlace PlaceOf(Step step) const;
  // Stream positions of a lane. REQUIRES: lane < lanes.
  LineRange LaneRange(LaneId lane) const;
  // Positions within the lane (0 is the lane's first) of its batch; may be empty.
  LineRange BatchRange(uint64_t step_of_epoch, LaneId lane) const;

  // Tasks in the order of the epoch's stream.
  std::vector<uint32_t> TaskOrder(uint64_t epoch) const;
  // order[i] = which line of the block comes i-th; `size` is the block's, at most buffer_lines.
  std::vector<uint32_t> BlockOrder(uint64_t epoch, LaneId lane, uint64_t block,
                                   uint32_t size) const;

  // REQUIRES: task >= tasks_before.
  TaskPlace PlaceOf(TaskId task) const;
  uint64_t Windows(uint32_t task_lines) const;
  std::vector<uint32_t> TaskBlockOrder(TaskId task, uint64_t block, uint32_t size) const;

 private:
  std::vector<uint32_t> task_lines_;
  Options options_;
  uint64_t lines_ = 0;
};

// The Fisher-Yates shuffle of 0 .. size-1 (Durstenfeld, CACM 1964), a pure function of `seed`: draw
// i is Mix64(seed + (i + 1) * 0x9e3779b97f4a7c15), brought into range by the high half of a product
// (Lemire, ACM TOMACS 2019, without rejection: the bias is below 2^-32).
std::vector<uint32_t> SeededPermutation(uint64_t seed, uint32_t size);

}  // namespace strata

#endif  // STRATA_WORKER_DATA_INDEX_EPOCH_PLAN_H_

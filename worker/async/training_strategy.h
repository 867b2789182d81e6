// What a lane of an asynchronous mode does next (DESIGN.md section 7; ALGORITHMS.md section 2).
#ifndef STRATA_WORKER_ASYNC_TRAINING_STRATEGY_H_
#define STRATA_WORKER_ASYNC_TRAINING_STRATEGY_H_

#include <cstdint>
#include <memory>

#include "proto/strata/job.pb.h"

namespace strata {

enum class LaneActionKind : uint8_t {
  // Get the weights that batches first .. end - 1 need; easgd: and the centre of what the lane's
  // copy is to be exchanged with. An empty range wants the latter alone.
  kPull,
  kGradient,   // of batch `first`, at the lane's copy
  kLocalStep,  // on the lane's copy, with the gradient of batch `first`
  kPush,       // what `window` has accumulated
  kExchange,   // the lane's copy against the centre, as `window`
  // The window is applied everywhere and the lane holds nothing that a cut would miss, but for a
  // gradient that belongs to the next window: the place to mark cuts.
  kWindowDone,
  kTaskDone,
};

struct LaneAction {
  LaneActionKind kind = LaneActionKind::kTaskDone;
  // Batches of the task, from 0.
  uint64_t first = 0;
  uint64_t end = 0;
  uint64_t window = 0;
  friend bool operator==(const LaneAction&, const LaneAction&) = default;
};

// A pure machine, one per lane: it handles numbers of batches and windows, never weights. A window
// is a run of BatchesPerWindow(training) batches from the task's start; the task's last one may be
// shorter. Steps are counted within the task, so that a task does the same wherever it runs.
//
// async: for each batch pull, gradient, push.
// downpour: pull before every nFetch-th batch, push after every nPush-th, and a local step after
//   each batch that another one follows before the next pull (Dean et al., NIPS 2012).
// easgd: a gradient and a local step for each batch; before every tau-th batch's local step, and
//   after the last one, an exchange (Zhang, Choromanska, LeCun, NIPS 2015, algorithm 1: the
//   gradient is that of the copy before the exchange).
class TrainingStrategy {
 public:
  virtual ~TrainingStrategy() = default;

  // A task of `batches` batches, of which the first `first_window` windows were done elsewhere. A
  // task before that did not come to its end is forgotten.
  virtual void BeginTask(uint64_t batches, uint64_t first_window) = 0;
  // REQUIRES: the action before it was carried out. After kTaskDone: kTaskDone again.
  virtual LaneAction Next() = 0;
};

// Of a task's `batches` batches those in its first `windows` windows, of `per_window` batches each;
// all of them where it has no more windows than that: a checkpoint may name any number.
// REQUIRES: per_window >= 1.
constexpr uint64_t BatchesOfWindows(uint64_t windows, uint64_t per_window, uint64_t batches) {
  return windows > batches / per_window ? batches : windows * per_window;
}

// `training` has its defaults resolved; its mode is not bsp.
std::unique_ptr<TrainingStrategy> MakeTrainingStrategy(const TrainingSpec& training);

}  // namespace strata

#endif  // STRATA_WORKER_ASYNC_TRAINING_STRATEGY_H_

// One lane of an asynchronous mode at work: carries out what its TrainingStrategy says.
// Tested by tests/e2e/async_test.cc
#ifndef STRATA_WORKER_ASYNC_LANE_WORK_H_
#define STRATA_WORKER_ASYNC_LANE_WORK_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "proto/core/ids.h"
#include "proto/runtime/base/timer.h"
#include "proto/strata/control.pb.h"
#include "worker/client/cancel_flag.h"
#include "worker/client/exchange.h"
#include "worker/client/push_sequences.h"
#include "worker/client/server_links.h"
#include "worker/data/reading/batch_source.h"
#include "worker/device/row_memory.h"
#include "worker/metrics/training_stats.h"
#include "worker/train/model_source.h"
#include "worker/train/plan.h"

namespace strata {

// How many lanes compute at a time: more would only share the cores. Thread-safe.
class ComputeSlots {
 public:
  explicit ComputeSlots(uint32_t slots) : free_(slots) {}
  void Acquire();
  void Release();

 private:
  absl::Mutex mu_;
  uint32_t free_ ABSL_GUARDED_BY(mu_);
};

struct LaneWorkOptions {
  // All outlive the lane's work.
  const TrainingPlan* plan = nullptr;
  const Exchange* exchange = nullptr;
  ServerLinks* links = nullptr;
  Timer* timer = Timer::Real();
  BatchSource* source = nullptr;
  TrainingStats* stats = nullptr;
  SequenceCounter* sequences = nullptr;  // of the session
  ComputeSlots* slots = nullptr;
  ModelSource* models = nullptr;
  // Rows of plain async, whose lanes have no copy of their own, stay there; null: on the host.
  device::RowMemory* rows = nullptr;
  // When it is set, calls to servers end with CANCELLED.
  CancelFlag* cancelled = nullptr;
  SessionId session;
  LaneId lane;
  uint32_t threads = 1;  // of the lane's computation
};

// One thread at a time. Errors are the source's, CANCELLED, or a server's that no retry mends; what
// a lane held when one came is forgotten.
class LaneWork {
 public:
  static absl::StatusOr<std::unique_ptr<LaneWork>> Make(const LaneWorkOptions& options);
  virtual ~LaneWork() = default;

  // Works on a task of `batches` batches from window `first_window` on. `window_done` is called
  // after each window that is applied everywhere, with the number of the next; its error ends the
  // task. `cut`: called for each push: the last cut that the lane has marked.
  struct Task {
    TaskId id;
    uint64_t batches = 0;
    uint64_t first_window = 0;
    std::function<absl::Status(uint64_t next_window)> window_done;
    std::function<uint64_t()> cut;
  };
  virtual absl::Status Run(const Task& task) = 0;
  // Of the task of the last Run, as far as it was read; what is before `first_window` is read for
  // it.
  virtual const TaskCounts& counts() const = 0;

  // The marker of a cut, to every server (ParameterClient::Mark).
  virtual absl::Status Mark(uint64_t cut, TaskId task, uint64_t window) = 0;
};

}  // namespace strata

#endif  // STRATA_WORKER_ASYNC_LANE_WORK_H_

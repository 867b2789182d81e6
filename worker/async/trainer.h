// Asynchronous training (async, downpour, easgd): lanes take tasks and work on them at their own
// pace.
#ifndef STRATA_WORKER_ASYNC_TRAINER_H_
#define STRATA_WORKER_ASYNC_TRAINER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "proto/core/ids.h"
#include "proto/runtime/base/timer.h"
#include "proto/strata/control.pb.h"
#include "worker/client/exchange.h"
#include "worker/client/push_sequences.h"
#include "worker/client/server_links.h"
#include "worker/data/reading/batch_source.h"
#include "worker/device/row_memory.h"
#include "worker/metrics/training_stats.h"
#include "worker/train/boundary.h"
#include "worker/train/model_source.h"
#include "worker/train/plan.h"

namespace strata {

struct AsyncTrainerOptions {
  // All outlive the trainer.
  const TrainingPlan* plan = nullptr;
  const Exchange* exchange = nullptr;
  ServerLinks* links = nullptr;
  Timer* timer = Timer::Real();
  BatchSource* source = nullptr;
  TrainingStats* stats = nullptr;
  SequenceCounter* sequences = nullptr;  // of the session
  SessionId session;
  // Threads of each lane's computation.
  uint32_t threads = 1;
  // Batches of a task, from its lines.
  std::function<uint64_t(TaskId)> batches_of;
  // Called after windows of lane 0, and once at the end, where this worker hosts lane 0.
  StepBoundary* boundary = nullptr;
  // Windows of all epochs, at least 1; and those behind the last evaluation before this generation.
  uint64_t total_windows = 1;
  uint64_t first_window = 0;
  ModelSource* models = nullptr;
  device::RowMemory* rows = nullptr;  // see LaneWorkOptions
  // How many lanes compute at a time; the others wait.
  uint32_t concurrent_lanes = 2;
};

// One thread per lane that has work. Run blocks; the other calls are thread-safe.
class AsyncTrainer {
 public:
  static std::unique_ptr<AsyncTrainer> Make(const AsyncTrainerOptions& options);
  virtual ~AsyncTrainer() = default;

  // Works on tasks and marks cuts until Stop (CANCELLED) or an error that no retry mends. Once all
  // tasks are done the host of lane 0 evaluates and says in its stats that it has finished.
  virtual absl::Status Run() = 0;

  // Everything this worker is to do now, as the scheduler tells; tasks already done are ignored.
  virtual void SetTasks(const std::vector<TaskAssignment>& tasks) = 0;
  // The newest cut that every hosted lane must mark, and the lanes hosted.
  virtual void SetCut(uint64_t cut, const std::vector<uint32_t>& lanes) = 0;
  // All cuts up to this one are over: lanes that have not marked one of them go on without.
  virtual void SetGivenUp(uint64_t cut) = 0;
  virtual void SetAllDone() = 0;
  // No lane waits for a server any more; one that computes comes to the end of its batch.
  virtual void Stop() = 0;
};

}  // namespace strata

#endif  // STRATA_WORKER_ASYNC_TRAINER_H_

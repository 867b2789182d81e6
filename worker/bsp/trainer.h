// Synchronous training of the lanes that this worker hosts: the shell around LaneDriver.
#ifndef STRATA_WORKER_BSP_TRAINER_H_
#define STRATA_WORKER_BSP_TRAINER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "ops/parallel.h"
#include "proto/core/ids.h"
#include "proto/runtime/base/timer.h"
#include "worker/bsp/lane_preparer.h"
#include "worker/client/exchange.h"
#include "worker/client/push_sequences.h"
#include "worker/client/server_links.h"
#include "worker/device/row_memory.h"
#include "worker/metrics/training_stats.h"
#include "worker/step/model.h"
#include "worker/train/boundary.h"
#include "worker/train/plan.h"

namespace strata {

struct BspTrainerOptions {
  // All outlive the trainer.
  const TrainingPlan* plan = nullptr;
  const Exchange* exchange = nullptr;
  ServerLinks* links = nullptr;
  Timer* timer = Timer::Real();
  LanePreparer* preparer = nullptr;
  Model* model = nullptr;
  device::RowMemory* rows = nullptr;  // of the model's device; null: rows go through the host
  ops::Parallel* parallel = nullptr;
  TrainingStats* stats = nullptr;
  StepBoundary* boundary = nullptr;
  SequenceCounter* sequences = nullptr;  // of the session
  SessionId session;
};

// Run blocks on its own thread; the other calls are thread-safe and may come at any time.
class BspTrainer {
 public:
  static std::unique_ptr<BspTrainer> Make(const BspTrainerOptions& options);
  virtual ~BspTrainer() = default;

  // Trains until the last step is committed everywhere (OK), Stop (CANCELLED), or an error that no
  // retry mends (bad data, a server's INVALID_ARGUMENT).
  virtual absl::Status Run() = 0;

  // The lanes to host from now on (ascending); new ones start at 1 + the smallest shard clock.
  virtual void SetLanes(const std::vector<uint32_t>& lanes) = 0;
  virtual void Stop() = 0;
};

}  // namespace strata

#endif  // STRATA_WORKER_BSP_TRAINER_H_

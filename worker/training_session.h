// One generation of a job on a worker, assembled: data, model, connections and the mode's trainer.
#ifndef STRATA_WORKER_TRAINING_SESSION_H_
#define STRATA_WORKER_TRAINING_SESSION_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/core/ids.h"
#include "proto/runtime/base/timer.h"
#include "proto/runtime/transport/transport.h"
#include "proto/strata/control.pb.h"
#include "worker/client/push_sequences.h"
#include "worker/data/reading/data_access.h"
#include "worker/device/worker_device.h"
#include "worker/metrics/training_stats.h"

namespace strata {

struct TrainingSessionOptions {
  WorkerJobDirective directive;
  SessionId member;
  SequenceCounter* sequences = nullptr;          // of that session; outlives this one
  DataTransport* transport = nullptr;            // outlives the session
  Caller caller = {};                            // as who it calls servers
  Timer* timer = Timer::Real();                  // outlives the session
  DataAccess* data = nullptr;                    // outlives the session
  uint32_t threads = 1;                          // when the job does not say
  const device::WorkerDevice* device = nullptr;  // outlives the session; null: none
  device::RowPath row_path = device::RowPath::kDevice;
  TrainingStats* stats = nullptr;  // outlives the session
  // A line of the worker's log, from any thread; outlives the session. Empty: there is none.
  std::function<void(absl::string_view event, absl::string_view reason)> log = nullptr;
  // Nobody wants the session any more: asked while Make reads lines. Empty: somebody always does.
  std::function<bool()> unwanted = nullptr;
};

class TrainingSession {
 public:
  // Errors: the directive contradicts itself, or the input files are not what was indexed.
  static absl::StatusOr<std::unique_ptr<TrainingSession>> Make(
      const TrainingSessionOptions& options);
  virtual ~TrainingSession() = default;

  // Trains to the end (OK), Stop (CANCELLED), or an error that ends the job. Blocks.
  virtual absl::Status Run() = 0;
  // A newer directive of the same generation: addresses, lanes, tasks, checkpoints. Any thread.
  virtual void Update(const WorkerJobDirective& directive) = 0;
  // Any thread.
  virtual void Stop() = 0;
};

}  // namespace strata

#endif  // STRATA_WORKER_TRAINING_SESSION_H_

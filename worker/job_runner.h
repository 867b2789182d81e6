// One job on one worker: the index pass, then training generation after generation.
#ifndef STRATA_WORKER_JOB_RUNNER_H_
#define STRATA_WORKER_JOB_RUNNER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "proto/core/ids.h"
#include "proto/runtime/base/job_work.h"
#include "proto/runtime/base/timer.h"
#include "proto/runtime/files/path_policy.h"
#include "proto/runtime/transport/transport.h"
#include "proto/strata/control.pb.h"
#include "worker/client/push_sequences.h"
#include "worker/data/reading/data_access.h"
#include "worker/device/worker_device.h"
#include "worker/metrics/stage_times.h"

namespace strata {

struct JobRunnerOptions {
  JobId job;
  JobWork* work = nullptr;                       // outlives the runner, which runs there
  std::string queue;                             // of this very job
  DataTransport* transport = nullptr;            // outlives the runner
  Caller caller;                                 // as who it calls servers
  DataAccess* data = nullptr;                    // outlives the runner
  PathPolicy paths = {};                         // where the job may read and write
  SequenceCounter* sequences = nullptr;          // of all sessions; outlives the runner
  uint32_t threads = 1;                          // when the job does not say
  const device::WorkerDevice* device = nullptr;  // outlives the runner; null: none
  device::RowPath row_path = device::RowPath::kDevice;
  std::function<void(const std::string& line)> log;
  Timer* timer = Timer::Real();  // outlives the runner
};

// Thread-safe. Nothing waits for files or servers: the index pass, opening of data, training and
// evaluation run in the job's queue of `work`. The destructor stops the job and waits for nothing
// either: what runs ends at its next step, and a later runner of the same job begins after it, or
// beside it where it hangs (proto/runtime/base/job_work.h).
class JobRunner {
 public:
  static std::unique_ptr<JobRunner> Make(const JobRunnerOptions& options);
  virtual ~JobRunner() = default;

  // What should be, from the scheduler. `session` is the worker's present one.
  virtual void Update(const WorkerJobDirective& directive, SessionId session) = 0;
  // The scheduler was heard: what Update said last holds. Training that ended because servers gave
  // its lanes to others (wire::IsLanesGone) begins again then, if there are lanes; it is no failure
  // of the job, and without a word of the scheduler it is not tried again.
  virtual void Heard() = 0;
  // What is.
  virtual WorkerJobReport Report() const = 0;
  // Where the time of the training at hand went.
  virtual StageSeconds Stages() const = 0;
  // TrainingStats::rows_there of it.
  virtual uint64_t RowsThere() const = 0;
};

}  // namespace strata

#endif  // STRATA_WORKER_JOB_RUNNER_H_

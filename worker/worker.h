// A process (or an object of the embedded runner) that trains: keeps its membership with the
// scheduler and runs the jobs it is given.
#ifndef STRATA_WORKER_WORKER_H_
#define STRATA_WORKER_WORKER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/runtime/base/id_source.h"
#include "proto/runtime/base/timer.h"
#include "proto/runtime/files/path_policy.h"
#include "proto/runtime/transport/scheduler_client.h"
#include "proto/runtime/transport/transport.h"
#include "worker/data/reading/data_access.h"
#include "worker/device/worker_device.h"
#include "worker/metrics/stage_times.h"

namespace strata {

struct WorkerOptions {
  std::string name;                      // stable over restarts, unique in the cluster
  SchedulerClient* scheduler = nullptr;  // outlives the worker
  DataTransport* transport = nullptr;    // outlives the worker
  // As who it calls servers; each job's session credential goes with the job's calls.
  Caller caller = {};
  DataAccess* data = DataAccess::Files();
  // Where jobs may read data and write metrics and predictions (--data-root). Default: anywhere.
  PathPolicy paths = {};
  // Threads that compute when the job does not say; 0: the machine's cores.
  uint32_t threads = 0;
  // How long the scheduler may hold a Sync; also how late a report can be.
  absl::Duration sync_wait = absl::Milliseconds(200);
  // Pauses before the next try of the scheduler. Outlives the worker.
  Timer* timer = Timer::Real();
  // Spreads its pauses before it looks for its scheduler again; null: they are not spread.
  IdSource* random = IdSource::System();
  // The GPU that it computes with where jobs want one; outlives the worker. Null: none.
  const device::WorkerDevice* device = nullptr;
  device::RowPath row_path = device::RowPath::kDevice;
  std::string metrics_address;
  // Of this process alone: remembers the cluster that the worker belongs to. Empty: nothing does.
  std::string directory;
  // Where messages for the log go; may be empty. Called from any thread.
  std::function<void(const std::string& line)> log;
  // Called, from a thread of its own, when a newer process has registered under this name: this one
  // is never let in again, and should end. May be empty; may be called again while it has not.
  std::function<void(const absl::Status& why)> on_replaced;
};

// What a scrape shows, summed over jobs since the process began.
struct WorkerCounters {
  uint64_t examples = 0;
  uint64_t bad_lines = 0;
  uint64_t jobs = 0;  // running now
  double examples_per_second = 0;
  double training_loss = 0;
  // Smallest step that a lane of a synchronous job is computing; 0: none.
  uint64_t step = 0;
  StageSeconds stages;  // of training; summed over the threads that drive steps
  // Pulled and pushed by the memory of a device that servers of this process have, too.
  uint64_t rows_there = 0;
  bool registered = false;
};

// Thread-safe.
class Worker {
 public:
  static absl::StatusOr<std::unique_ptr<Worker>> Start(const WorkerOptions& options);
  // Stops training and waits for its threads; tells nobody (the lease lapses).
  virtual ~Worker() = default;
  virtual WorkerCounters Counters() const = 0;
};

}  // namespace strata

#endif  // STRATA_WORKER_WORKER_H_

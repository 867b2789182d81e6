// The scheduler as an object: ClusterState with a clock, a store and file IO around it. The
// embedded runner calls it directly; scheduler_service.h puts gRPC before it.
#ifndef STRATA_SCHEDULER_SCHEDULER_H_
#define STRATA_SCHEDULER_SCHEDULER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/runtime/base/id_source.h"
#include "proto/runtime/base/timer.h"
#include "proto/runtime/credentials/credential_source.h"
#include "proto/runtime/files/path_policy.h"
#include "proto/runtime/transport/scheduler_client.h"
#include "scheduler/job_owners.h"
#include "scheduler/store/metadata_store.h"

namespace strata::scheduler {

struct SchedulerOptions {
  // Required.
  std::unique_ptr<MetadataStore> store;
  // Must outlive the scheduler. Leases, long polls and ticks go by it, and every time that users
  // are told is one of it.
  Timer* timer = Timer::Real();
  // How long a node may be silent, as far as the scheduler itself heard. At least 10 ms.
  absl::Duration lease = absl::Seconds(10);
  // A thread calls Tick this often, and 16 times per lease at least; zero: nobody does but the
  // caller (tests).
  absl::Duration tick_interval = absl::Milliseconds(100);
  std::string version = "strata";
  // Where jobs may keep checkpoints and begin from some (--data-root). Default: anywhere.
  PathPolicy paths = {};
  // Of this process. A new store is of its certificate's cluster, and a store of another cluster is
  // refused; sessions get credentials that servers check. Null: nobody is asked who he is.
  std::shared_ptr<CredentialSource> credentials = nullptr;
  // Sessions get credentials without certificates too: nodes of one process ask each other.
  bool sign_sessions = false;
  // Which certificates count no more, as revocations.h writes them; asked at each call of a node,
  // so it is to answer at once. May be empty.
  std::function<std::string()> revoked = nullptr;
  // Operators who may decide about every job (--admins).
  std::vector<std::string> admins = {};
  // Draws the cluster's id, if the store is new, and jobs' UIDs; outlives the scheduler.
  IdSource* ids = IdSource::System();
  // The store ends with the process, and the cluster with it.
  bool transient = false;
  // The store comes from an older copy: for a lease nodes are only heard, and calls are
  // UNAVAILABLE. Then its numbers go on above all that were heard of, and each job from its newest
  // checkpoint.
  bool restored = false;
  // Calls return when the work on files that they bring about is done. For tests: elsewhere nobody
  // waits for files.
  bool await_files = false;
  // Gets lines of the form "event key=value ...": what happens to jobs and nodes. May be empty; is
  // called under a lock and must not block or call back.
  std::function<void(const std::string&)> log;
};

// What a scrape shows.
struct SchedulerCounters {
  uint64_t syncs = 0;
  uint64_t fenced = 0;  // calls answered UNAUTHENTICATED
  uint64_t appends = 0;
  uint64_t append_failures = 0;
  uint64_t live_servers = 0;
  uint64_t live_workers = 0;
  uint64_t jobs_pending = 0;
  uint64_t jobs_running = 0;
  uint64_t jobs_succeeded = 0;
  uint64_t jobs_failed = 0;
  uint64_t jobs_cancelled = 0;
  uint64_t rollbacks = 0;
  uint64_t under_replicated = 0;  // unfinished jobs with shards that lack copies
  uint64_t quarantined = 0;       // copies that servers keep of jobs that nobody knows
};

// Thread-safe. The destructor stops: calls that wait are answered UNAVAILABLE; no call may begin
// after it has begun. It waits for work on files.
class Scheduler : public SchedulerClient, public JobOwners {
 public:
  // Reads the store; jobs, sessions and generations go on where they were, and no session lapses
  // for one full lease. DATA_LOSS: a record cannot be read. INVALID_ARGUMENT: options.
  // FAILED_PRECONDITION: the store is of another cluster than `credentials`.
  static absl::StatusOr<std::unique_ptr<Scheduler>> Start(SchedulerOptions options);

  // Answers calls that wait with UNAVAILABLE, and all later ones. Stores how long jobs have
  // trained. Idempotent.
  virtual void Stop() = 0;
  // Lets time act: leases, deadlines. Passes what a call of a node passes (locks, store), so that
  // it is held up by what holds up those. Files of jobs hold up neither.
  virtual void Tick() = 0;
  virtual SchedulerCounters Counters() const = 0;
};

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_SCHEDULER_H_

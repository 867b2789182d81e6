// The jobs of a server over their lives: opening (on a thread of its own), open, replaced by a new
// generation, closed.
#ifndef STRATA_SERVER_JOB_KEEPER_H_
#define STRATA_SERVER_JOB_KEEPER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/core/ids.h"
#include "proto/core/mutex.h"
#include "proto/core/uid.h"
#include "proto/runtime/files/path_policy.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/control.pb.h"
#include "server/data_service.h"
#include "server/job/held_jobs.h"
#include "server/job/plan.h"
#include "server/job/server_job.h"
#include "storage/gpu/backend.h"
#include "storage/log/update_log.h"

namespace strata::server {

// Follow, ReopenDamaged, RemoveAgain, Fence, Begin and destruction come from one thread; the rest
// from any.
//
// A job that is over is removed by the folder that was noted when it was opened, and only if what
// lies there is of this very job. Files of jobs that this process was not told of yet are reported
// (KEPT): the scheduler says whether they are opened, removed or, where it knows of no such job,
// kept and served to nobody (QUARANTINED).
class JobKeeper {
 public:
  struct Options {
    std::string root;  // of jobs that name no directory
    std::string name;  // of the server: its folder below a directory that a job names
    uint64_t log_direct_from_bytes = storage::UpdateLogOptions{}.direct_from_bytes;
    uint64_t tier_memtable_bytes = 0;  // as in ServerOptions
    // The GPU of this server; null: it has none.
    storage::gpu::GpuBackendFactory make_gpu;
    PathPolicy paths;        // where jobs may keep rows, checkpoints and removals
    ServerJob::Options job;  // what is named there outlives the keeper, which waits by its timer
    DataService* service = nullptr;
  };
  // How long after an opening that may yet succeed (disk full, checkpoint unreachable), after a
  // tier's second damage, and after a removal that failed, the next try.
  static constexpr absl::Duration kReopenAfter = absl::Seconds(2);

  explicit JobKeeper(Options options);
  // Closes all jobs; what they have on disk stays.
  ~JobKeeper();

  // Finds what processes before this one kept. Before anything else.
  absl::Status Begin();
  void Follow(const NodeDirective& directive);
  // Opens jobs anew whose SSD tier was found damaged: their shards are recovered as after a restart
  // of this process, which is what workers and the scheduler take it for (another incarnation in
  // replies, `reopened` in reports). At level memory there is nothing to recover from: LOST.
  void ReopenDamaged();
  // Tries again, after a while each, to remove what could not be removed when it was told.
  void RemoveAgain();
  // As the destructor; Follow must not be called any more.
  void CloseAll();
  // The session was fenced: nothing is served until a directive of a new session names it.
  void Fence();

  std::vector<ServerJobReport> Reports() const;
  // Files of jobs that are not open here, which no scheduler knows.
  uint64_t quarantined() const;
  // Something is being opened, or a cut is ordered and not answered: report soon.
  bool Busy() const;
  std::vector<std::shared_ptr<ServerJob>> Jobs() const;

 private:
  struct Reopening {
    uint32_t times = 0;  // after the first opening
    std::string why;     // the last time
  };
  // Files that are to go and could not be removed.
  struct Removal {
    ServerJobDirective directive;
    absl::Time next;
    std::string why;  // as it was told last
  };
  // Files without an open job.
  struct Kept {
    HeldJob job;
    uint64_t bytes = 0;
  };
  struct Entry {
    JobIdentity identity;
    Generation generation;
    Reopening reopening;
    std::string root;
    ServerJobReport::State state = ServerJobReport::OPENING;
    std::string message;
    ServerJobDirective directive;  // the newest
    std::shared_ptr<ServerJob> job;
    std::thread opener;
    bool cancelled = false;
  };

  void FollowOne(const ServerJobDirective& directive);
  void StartOpening(const ServerJobDirective& directive, const Reopening& reopening);
  void Open(JobId id, ServerJobDirective directive, const Reopening& reopening);
  // True when the entry is settled; false: try again.
  bool OpenOnce(JobId id, const ServerJobDirective& directive, const Reopening& reopening);
  bool Settle(JobId id, Generation generation, ServerJobReport::State state, std::string message,
              std::shared_ptr<ServerJob> job);
  void Drop(JobId id);
  // As Drop; what is on disk is told from now on as files without an open job.
  void Release(JobId id);
  // Closes the job and removes its files, or keeps them.
  void CloseJob(const ServerJobDirective& directive, const JobIdentity& identity);
  void RemoveFiles(const ServerJobDirective& directive, const JobIdentity& identity);
  absl::Status TryToRemove(const ServerJobDirective& directive, const JobIdentity& identity);
  absl::Status Hold(const JobPlan& plan, const std::string& root);
  std::string RootFor(const ServerJobDirective& directive) const;
  // Folder that holds the job's, wherever it was told.
  std::string RootOf(const std::string& storage_directory) const;

  const Options options_;
  std::map<JobIdentity, Removal> removals_;  // of the thread that calls Follow
  Mutex held_mu_ ABSL_ACQUIRED_BEFORE(mu_);
  HeldJobs held_ ABSL_GUARDED_BY(held_mu_);
  mutable Mutex mu_;
  std::map<JobIdentity, Kept> kept_ ABSL_GUARDED_BY(mu_);
  std::map<JobId, std::unique_ptr<Entry>> entries_ ABSL_GUARDED_BY(mu_);
};

}  // namespace strata::server

#endif  // STRATA_SERVER_JOB_KEEPER_H_

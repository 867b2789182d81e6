// The jobs of a server over their lives: opening, open, replaced by a new generation, closed.
#ifndef STRATA_SERVER_JOB_KEEPER_H_
#define STRATA_SERVER_JOB_KEEPER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/core/ids.h"
#include "proto/core/mutex.h"
#include "proto/core/uid.h"
#include "proto/runtime/base/job_work.h"
#include "proto/runtime/files/path_policy.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/control.pb.h"
#include "server/data_service.h"
#include "server/job/held_jobs.h"
#include "server/job/job_folder.h"
#include "server/job/plan.h"
#include "server/job/server_job.h"
#include "storage/gpu/backend.h"
#include "storage/log/update_log.h"

namespace strata::server {

// Follow, Tend, Fence, Begin and destruction come from one thread; the rest from any.
//
// None of them but destruction waits for work: what opens, closes and removes runs in the job's own
// queue (proto/runtime/base/job_work.h). A generation that hangs is given up when the next one
// comes, which has a folder of its own; the same generation, and the end of the job's files, wait
// for all that was begun. What is told of a job meanwhile: OPENING, and files that are KEPT.
//
// A job that is over is removed by the folder that was noted when it was opened, and only if what
// lies there is of this very job. Files of jobs that this process was not told of yet are reported
// (KEPT): the scheduler says whether they are opened, removed or, where it knows of no such job,
// kept and served to nobody (QUARANTINED).
class JobKeeper {
 public:
  struct Options {
    std::string root;     // of jobs that name no directory
    std::string name;     // of the server: its folder below a directory that a job names
    std::string boot_id;  // of this machine's start (server/job/boot_note.h); empty: not known
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
  // Closes all jobs; what they have on disk stays. Waits for all work.
  ~JobKeeper();

  // Reads what processes before this one noted, and reports it from here on. Before anything else.
  // What is there of it is looked at beside: its size, and whether it is there at all.
  absl::Status Begin();
  void Follow(const NodeDirective& directive);
  // Time passes: what waits long enough is begun beside what hangs, and what could not be removed
  // when it was told is tried again. Opens jobs anew whose SSD tier was found damaged: their shards
  // are recovered as after a restart of this process, which is what workers and the scheduler take
  // it for (another incarnation in replies, `reopened` in reports). At level memory there is
  // nothing to recover from: LOST.
  void Tend();
  // As the destructor; Follow must not be called any more.
  void CloseAll();
  // The session was fenced: nothing is served until a directive of a new session names it.
  void Fence();

  std::vector<ServerJobReport> Reports() const;
  // By uid, the folders below `root` of jobs that are open or are to be, or were: all but those
  // that no scheduler knows.
  std::map<std::string, std::string> OwnFolders() const;
  // Files of jobs that are not open here, which no scheduler knows.
  uint64_t quarantined() const;
  // Something is being opened or closed, a cut is ordered and not answered, or shards do not have
  // the newest sessions yet: report soon.
  bool Busy() const;
  // Of shards: what becomes of another copy is to be told soon.
  bool HasCopies() const;
  std::vector<std::shared_ptr<ServerJob>> Jobs() const;

 private:
  struct Reopening {
    uint32_t times = 0;  // after the first opening
    std::string why;     // the last time
  };
  // Files that are to go.
  struct Removal {
    JobId job;
    std::string told;     // where they are, unless they were noted elsewhere
    bool posted = false;  // the work is, or runs
    absl::Time since;     // when it was
    absl::Time next;      // if it is not: the next try
    std::string why;      // it failed, as it was told last
  };
  // Files without an open job.
  struct Kept {
    HeldJob job;
    uint64_t bytes = 0;     // 0: not looked at yet
    Generation generation;  // the latest; 0: not looked at yet
    bool made = true;       // its folder was; false: perhaps not
    bool of_note = false;   // all that is known of it is what an earlier process noted
    // In quarantine: as it was opened, or why that cannot be read.
    std::optional<absl::StatusOr<KeptJob>> note = std::nullopt;  // nothing: it is not read yet
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
    // Nobody wants the entry any more: it is not in entries_. Set under mu_.
    const std::shared_ptr<std::atomic<bool>> cancelled = std::make_shared<std::atomic<bool>>(false);
    // When a step of its opening ended last, in ns of the timer.
    const std::shared_ptr<std::atomic<int64_t>> stepped = std::make_shared<std::atomic<int64_t>>(0);
  };
  using EntryPtr = std::shared_ptr<Entry>;
  using Begins = JobWork::Begins;

  void FollowOne(const ServerJobDirective& directive);
  void StartOpening(const ServerJobDirective& directive, const Reopening& reopening, Begins begins);
  // What an opening does in the job's queue.
  void Open(const EntryPtr& entry, const ServerJobDirective& directive, const Reopening& reopening);
  // True when the entry is settled; false: try again.
  bool OpenOnce(const EntryPtr& entry, const ServerJobDirective& directive,
                const Reopening& reopening);
  absl::StatusOr<JobPlan> Plan(const EntryPtr& entry, const ServerJobDirective& directive) const;
  bool Settle(const EntryPtr& entry, ServerJobReport::State state, std::string message,
              std::shared_ptr<ServerJob> job);
  // Nothing of it is served or reported from here on; what it has is closed in its queue.
  void Drop(JobSlot slot);
  // As Drop; what is on disk is told from now on as files without an open job.
  void Release(JobSlot slot);
  // Those of the job that `which` takes.
  std::vector<JobSlot> SlotsOf(JobId id, const std::function<bool(const Entry&)>& which) const;
  // Of a job of which the directive names others: copies that it does not name are none any more,
  // and their files go.
  void DropUnnamed(const NodeDirective& directive);
  void DropCopy(JobSlot slot);
  void RemoveCopyLater(const JobIdentity& identity, JobSlot slot, const std::string& root);
  void RemoveLeftCopies(const JobIdentity& identity, JobId job, const std::string& root,
                        const std::set<JobSlot>& named);
  // Files in the slot's folder are being removed.
  bool CopyLeaves(const JobIdentity& identity, JobSlot slot) const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  void Destroy(const JobIdentity& identity, std::shared_ptr<ServerJob> job);
  // Closes the job and has its files removed, or keeps them.
  void CloseJob(const ServerJobDirective& directive, const JobIdentity& identity);
  void Quarantine(const JobIdentity& identity);
  void ReopenDamaged();
  void RemoveAgain();
  // Has the job's queue remove what `removal` speaks of.
  void PostRemoval(const JobIdentity& identity, Removal& removal)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // These run in the job's queue.
  void RemoveFiles(const JobIdentity& identity);
  // `made`: there were files, wherever they are now.
  absl::Status TryToRemove(const std::string& root, bool made, const JobIdentity& identity);
  void LookAtHeld(const JobIdentity& identity, const std::string& root);
  void NoteQuarantine(const JobIdentity& identity);
  // Tells that work of the job hangs, where it does.
  void ReportHang(const JobIdentity& identity, ServerJobReport& report) const;
  absl::Status Hold(const JobPlan& plan, const std::string& root);
  // After an opening that failed: there may be nothing to hold.
  void Unhold(const JobIdentity& identity, const std::string& root);
  static std::string QueueOf(const JobIdentity& identity);
  std::string RootFor(const ServerJobDirective& directive) const;
  // Folder that holds the job's, wherever it was told.
  std::string RootOf(const std::string& storage_directory) const;

  const Options options_;
  Mutex held_mu_ ABSL_ACQUIRED_BEFORE(mu_);
  HeldJobs held_ ABSL_GUARDED_BY(held_mu_);
  mutable Mutex mu_;
  std::map<JobIdentity, Kept> kept_ ABSL_GUARDED_BY(mu_);
  std::map<JobIdentity, Removal> removals_ ABSL_GUARDED_BY(mu_);
  // Objects of jobs that nobody finds any more, and since when the newest was one: they may write.
  struct Closing {
    int objects = 0;
    absl::Time since;
  };
  std::map<JobIdentity, Closing> closing_ ABSL_GUARDED_BY(mu_);
  std::map<JobSlot, EntryPtr> entries_ ABSL_GUARDED_BY(mu_);
  std::multiset<JobSlot> leaving_ ABSL_GUARDED_BY(mu_);  // copies whose files are being removed
  // Jobs whose copies of before were looked for; true: that goes on.
  std::map<JobIdentity, bool> left_copies_ ABSL_GUARDED_BY(mu_);
  JobFolders folders_;
  JobWork work_;  // last: what it does uses all of the above
};

}  // namespace strata::server

#endif  // STRATA_SERVER_JOB_KEEPER_H_

// The scheduler as an object: its members. scheduler_impl.cc: how it begins and goes on;
// scheduler_files.cc: its work on files; scheduler_calls.cc: what nodes and users ask of it;
// scheduler_adoption.cc: jobs whose records are lost; scheduler_credentials.cc: who calls.
// Tested by tests/scheduler/scheduler_test.cc
#ifndef STRATA_SCHEDULER_SCHEDULER_IMPL_H_
#define STRATA_SCHEDULER_SCHEDULER_IMPL_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/core/mutex.h"
#include "proto/core/uid.h"
#include "proto/runtime/base/id_source.h"
#include "proto/runtime/base/job_work.h"
#include "proto/runtime/base/timer.h"
#include "proto/runtime/credentials/caller.h"
#include "proto/runtime/credentials/credential_source.h"
#include "proto/strata/control.pb.h"
#include "scheduler/cluster_state.h"
#include "scheduler/job/file_queue.h"
#include "scheduler/job/machine.h"
#include "scheduler/job/news.h"
#include "scheduler/node_credentials.h"
#include "scheduler/scheduler.h"
#include "scheduler/store/change_batch.h"
#include "scheduler/store/checkpoint_locks.h"
#include "scheduler/store/metadata_store.h"
#include "scheduler/store/submission.h"
#include "scheduler/store/submission_looks.h"

namespace strata::scheduler {

class SchedulerImpl : public Scheduler {
 public:
  explicit SchedulerImpl(SchedulerOptions options)
      : timer_(options.timer),
        lease_(options.lease),
        tick_interval_(std::min(options.tick_interval, options.lease / 16)),
        version_(std::move(options.version)),
        restored_(options.restored),
        ids_(options.ids),
        transient_(options.transient),
        await_files_(options.await_files),
        credentials_(std::move(options.credentials)),
        sign_sessions_(options.sign_sessions),
        revoked_(std::move(options.revoked)),
        admins_(options.admins.begin(), options.admins.end()),
        store_(std::move(options.store)),
        state_(options.lease,
               credentials_ != nullptr ? credentials_->cluster() : DrawId<ClusterId>(*options.ids),
               options.transient),
        news_(std::move(options.log)),
        looks_(options.timer, std::move(options.paths)),
        files_(options.timer) {}

  ~SchedulerImpl() override;

  absl::Status Open();
  absl::StatusOr<NodeDirective> Sync(const NodeReport& report, absl::Duration timeout) override;
  absl::StatusOr<SubmitReply> Submit(const SubmitRequest& request, absl::Duration timeout) override;
  absl::StatusOr<SubmitReply> SubmitAs(const Caller& caller, const SubmitRequest& request,
                                       absl::Duration timeout) override;
  absl::StatusOr<uint64_t> OwnJob(const Caller& caller, const JobRef& ref) override;
  absl::StatusOr<SettleQuarantineReply> SettleQuarantineAs(const Caller& caller,
                                                           const SettleQuarantineRequest& request,
                                                           absl::Duration timeout) override;
  absl::StatusOr<JobStatus> GetJob(const JobRef& ref, absl::Duration) override;
  absl::StatusOr<ListJobsReply> ListJobs(absl::Duration) override;
  absl::StatusOr<JobStatus> CancelJob(const JobRef& ref, absl::Duration) override;
  absl::StatusOr<CreateCheckpointReply> CreateCheckpoint(const CreateCheckpointRequest& request,
                                                         absl::Duration timeout) override;
  absl::StatusOr<ClusterStatus> GetCluster(absl::Duration) override;
  absl::StatusOr<JobShards> GetShards(const JobRef& ref, absl::Duration) override;
  absl::StatusOr<GetEventsReply> GetEvents(const GetEventsRequest& request,
                                           absl::Duration timeout) override;
  absl::StatusOr<SettleQuarantineReply> SettleQuarantine(const SettleQuarantineRequest& request,
                                                         absl::Duration timeout) override;
  void Stop() override;
  void Tick() override;
  SchedulerCounters Counters() const override;

 private:
  // Counts a call, so that the object outlives it.
  class Call {
   public:
    explicit Call(SchedulerImpl* s) : s_(s) {
      MutexLock lock(&s_->mu_);
      ++s_->calls_;
    }
    ~Call() {
      MutexLock lock(&s_->mu_);
      --s_->calls_;
    }

   private:
    SchedulerImpl* const s_;
  };

  // Checkpoints of jobs that go on from an older copy of the records.
  struct FoundOfJobs {
    struct Missing {
      ClusterState::JobFolder of;
      std::string why = {};  // it did answer: so
      bool again = false;    // is to be asked again
      bool final = false;    // is not asked any more
    };
    absl::Time give_up;
    std::map<uint64_t, Missing> missing;  // directories whose checkpoints are not known, by job
    ClusterState::FoundByJob found;
  };

  SubmitReply Reply(uint64_t job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Nothing is shown while something of it is not in the store, or while nodes are only heard.
  absl::Status Ready() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (stopped_) return absl::UnavailableError("the scheduler is stopping");
    if (state_.hearing()) return ClusterState::OnlyHears();
    return unsaved_.empty() ? absl::OkStatus() : Save();
  }

  // Of a ticket; DEADLINE_EXCEEDED after `wait_ms`.
  absl::StatusOr<CreateCheckpointReply> AwaitCheckpoint(uint64_t job, uint64_t ticket,
                                                        uint32_t wait_ms, absl::Time deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Waits for the next change, the end of the scheduler or `deadline`.
  void AwaitChange(absl::Time deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const auto changed = [this, seen = changes_]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return stopped_ || changes_ != seen;
    };
    AwaitUntil(timer_, &mu_, absl::Condition(&changed), deadline);
  }

  // Appends what has changed; wakes those who wait. UNAVAILABLE: the store did not take it; the
  // next event tries again. Durations alone keep nobody waiting: the next ones hold them, too.
  absl::Status Save() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Has work on files begun that is due: jobs get the locks of their checkpoint directories, those
  // of others are given back, and what waited for its lock is done. Waits for none of it, but where
  // Options.await_files says so.
  void TendFiles();
  void TendLocks();
  // Tells jobs what became of their locks.
  void TellOfLocks();
  // A job that is to begin has its lock under another number than when its directory was looked at:
  // that is done again, in the job's queue, and then the job hears of its lock. False: there is no
  // need.
  bool LookAgain(const LockNews& news) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Runs in the job's queue.
  void LookNow(const LockNews& news, const ClusterState::DirectoryLook& look);
  absl::StatusOr<FoundInDirectory> LookIn(const ClusterState::DirectoryLook& look) const;
  // The number under which the job has held its lock ever since it was asked for; 0: it has not.
  uint64_t LookedUnder(const JobUid& uid, const CheckpointLocks::View& asked) const;
  // Why a job waits that has not.
  static std::string NotHeld(const std::string& directory);
  // After work on a lock.
  void OnLockWork();
  // At the end.
  void GiveLocksBack();
  // Jobs that write checkpoints, or whose files are being worked on.
  std::vector<LockedJob> LockedJobs() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Waits for a job that has ended in this directory to have done its removals.
  void AwaitEnded(const std::string& directory, absl::Time give_up);
  // Takes the lock of the job's checkpoint directory. If it is not held then, `why` says what the
  // job has to wait for. Waits for as long as an owner that lives needs to show that.
  // FAILED_PRECONDITION: one does. DEADLINE_EXCEEDED: the directory does not answer.
  absl::StatusOr<CheckpointLocks::View> AskForLock(const TrainingJob& job, const JobUid& uid,
                                                   absl::Time deadline);
  // Until when a caller with so much time waits for the folders of a job.
  absl::Time SubmitDeadline(absl::Duration timeout) const;
  // ADOPT of SettleQuarantine, by way of a submission.
  absl::StatusOr<SettleQuarantineReply> AdoptJob(const std::string& owner,
                                                 const std::string& job_uid,
                                                 absl::Duration timeout);
  absl::StatusOr<SettleQuarantineReply> EnterAdopted(const std::string& owner, const JobUid& uid,
                                                     FoundCheckpoints own,
                                                     const std::string& directory,
                                                     const CheckpointLocks::View& lock);
  // The job is one of the cluster.
  absl::StatusOr<SubmitReply> Enter(const SubmitRequest& resolved, const std::string& owner,
                                    const JobUid& uid, FoundCheckpoints found,
                                    CheckpointLocks::View lock);

  // The store and the certificate are of one cluster; sessions' key is there, for good.
  absl::Status OpenCredentials(const std::map<std::string, std::string>& records)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // PERMISSION_DENIED unless the caller is among the owners, an admin, or nobody was asked.
  // `what`: as "decide about job 7"; `remedy`: what else he may do.
  absl::Status CheckOwner(const Caller& caller, const std::set<std::string>& owners,
                          absl::string_view what, absl::string_view remedy) const;
  // Of the checkpoints that a job found in its directory.
  absl::Status CheckOwnersOf(const Caller& caller, const FoundCheckpoints& found) const;
  // Of the copies that a request means.
  absl::Status CheckOwnersOf(const Caller& caller, const SettleQuarantineRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Time WallNow() const { return timer_->Wall(timer_->Now()); }

  // To each job's own queue: a folder that hangs holds up its job's files and nobody else. What a
  // job may not write now waits for its lock, and all that comes after it does.
  void PostFiles() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Runs in the job's queue.
  void DoFiles(uint64_t job);
  // False: not now.
  bool Do(const WriteManifestWork& work);
  // What cannot be removed stays: it is no longer counted on, and --overwrite takes it later.
  bool Do(const RemoveCheckpointWork& work);
  bool Do(const EmptyFileWork& work);
  bool Do(const RemoveLeftoversWork& work);
  bool Do(const EndRunWork& work);
  // Whether files in the job's checkpoint directory may be changed, by its lock on disk; nothing:
  // not now. With the error of the failpoint of that name.
  std::optional<absl::Status> MayChange(uint64_t job, absl::string_view failpoint);
  void Done(uint64_t job, uint64_t removal, const absl::Status& status);

  // After Options.restored: whether nodes are told things. When they were heard for long enough, it
  // looks which checkpoints there are, and begins.
  bool MaySpeak();
  // Has each job's directory looked at.
  // The first time, and those that are to be asked again.
  void LookForCheckpoints() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FoundOwn(uint64_t job, absl::StatusOr<OwnCheckpoints> own);

  void RunTicker();

  Timer* const timer_;
  const absl::Duration lease_;
  const absl::Duration tick_interval_;
  const std::string version_;
  const bool restored_;
  IdSource* const ids_;
  const bool transient_;
  const bool await_files_;
  const std::shared_ptr<CredentialSource> credentials_;  // null: nobody is asked
  const bool sign_sessions_;
  const std::function<std::string()> revoked_;  // may be empty
  const std::set<std::string> admins_;
  std::thread ticker_;
  std::unique_ptr<CheckpointLocks> locks_;  // constant after Open

  mutable Mutex mu_;
  std::unique_ptr<MetadataStore> store_ ABSL_GUARDED_BY(mu_);
  ClusterState state_ ABSL_GUARDED_BY(mu_);
  std::optional<NodeCredentials> node_credentials_ ABSL_GUARDED_BY(mu_);  // where they are signed
  JobNews news_ ABSL_GUARDED_BY(mu_);
  ChangeBatch unsaved_ ABSL_GUARDED_BY(mu_);
  FileQueue work_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, LockNews> looks_due_ ABSL_GUARDED_BY(mu_);  // looks that failed, by job
  std::optional<FoundOfJobs> found_ ABSL_GUARDED_BY(mu_);        // while the scheduler only hears
  uint64_t changes_ ABSL_GUARDED_BY(mu_) = 0;     // those who wait look at everything again
  uint64_t lock_works_ ABSL_GUARDED_BY(mu_) = 0;  // how often OnLockWork was called
  SchedulerCounters counters_ ABSL_GUARDED_BY(mu_);
  int calls_ ABSL_GUARDED_BY(mu_) = 0;
  bool opened_ ABSL_GUARDED_BY(mu_) = false;  // state_ is the store's, and serves
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  bool refused_ ABSL_GUARDED_BY(mu_) = false;  // an append failed since the last tick
  SubmissionLooks looks_;
  JobWork files_;  // last: what it does uses the rest
};

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_SCHEDULER_IMPL_H_

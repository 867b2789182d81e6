// The scheduler as an object: its members. scheduler_impl.cc: how it begins and goes on;
// scheduler_files.cc: its work on files; scheduler_calls.cc: what nodes and users ask of it.
// Tested by tests/scheduler/scheduler_test.cc
#ifndef STRATA_SCHEDULER_SCHEDULER_IMPL_H_
#define STRATA_SCHEDULER_SCHEDULER_IMPL_H_

#include <algorithm>
#include <cstdint>
#include <memory>
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
#include "proto/runtime/base/timer.h"
#include "proto/runtime/files/path_policy.h"
#include "proto/strata/control.pb.h"
#include "scheduler/cluster_state.h"
#include "scheduler/job/machine.h"
#include "scheduler/job/news.h"
#include "scheduler/scheduler.h"
#include "scheduler/store/checkpoint_locks.h"
#include "scheduler/store/metadata_store.h"
#include "scheduler/store/submission.h"

namespace strata::scheduler {

class SchedulerImpl : public Scheduler {
 public:
  explicit SchedulerImpl(SchedulerOptions options)
      : timer_(options.timer),
        lease_(options.lease),
        tick_interval_(std::min(options.tick_interval, options.lease / 16)),
        version_(std::move(options.version)),
        restored_(options.restored),
        paths_(std::move(options.paths)),
        ids_(options.ids),
        transient_(options.transient),
        store_(std::move(options.store)),
        state_(options.lease, DrawId<ClusterId>(*options.ids), options.transient),
        news_(std::move(options.log)) {}

  ~SchedulerImpl() override {
    Stop();
    if (ticker_.joinable()) ticker_.join();
    {
      // Calls that were waiting are on their way out.
      MutexLock lock(&mu_);
      mu_.Await(absl::Condition(
          +[](int* calls) { return *calls == 0; }, &calls_));
    }
    GiveLocksBack();
  }

  absl::Status Open();

  absl::StatusOr<NodeDirective> Sync(const NodeReport& report, absl::Duration timeout) override;

  absl::StatusOr<SubmitReply> Submit(const SubmitRequest& request, absl::Duration) override;

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

  SubmitReply Reply(uint64_t job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Nothing is shown while something of it is not in the store, or while nodes are only heard.
  absl::Status Ready() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (stopped_) return absl::UnavailableError("the scheduler is stopping");
    if (state_.hearing()) return ClusterState::OnlyHears();
    return unsaved_.empty() ? absl::OkStatus() : Save();
  }

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

  // Gives jobs the locks of their checkpoint directories and takes back those of others; tells jobs
  // what became of theirs.
  void TendLocks();
  // At the end.
  void GiveLocksBack();
  // Jobs that write checkpoints, or whose files are being worked on.
  std::vector<LockedJob> LockedJobs() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Waits for a job that has ended in this directory to have done its removals, half a lease at
  // most.
  void AwaitEnded(const std::string& directory);
  // Takes the lock of the job's checkpoint directory. If it is not held then, `why` says what the
  // job has to wait for. Waits for as long as an owner that lives needs to show that.
  // FAILED_PRECONDITION: one does.
  absl::StatusOr<CheckpointLocks::View> AskForLock(const TrainingJob& job, const JobUid& uid);
  // The job is one of the cluster.
  absl::StatusOr<SubmitReply> Enter(const SubmitRequest& resolved, const JobUid& uid,
                                    FoundCheckpoints found, CheckpointLocks::View lock);

  // What jobs may not write now waits for their locks.
  void DoFileWork();
  void DoNow(std::vector<FileWork> work, std::vector<FileWork>& later);
  // False: not now.
  bool Do(const WriteManifestWork& work);
  // What cannot be removed stays: it is no longer counted on, and --overwrite takes it later.
  bool Do(const RemoveCheckpointWork& work);
  bool Do(const EmptyFileWork& work);
  bool Do(const RemoveIncompleteWork& work);

  // After Options.restored: whether nodes are told things. When they were heard for long enough, it
  // looks which checkpoints there are, and begins.
  bool MaySpeak();

  void RunTicker();

  Timer* const timer_;
  const absl::Duration lease_;
  const absl::Duration tick_interval_;
  const std::string version_;
  const bool restored_;
  const PathPolicy paths_;
  IdSource* const ids_;
  const bool transient_;
  std::thread ticker_;
  std::unique_ptr<CheckpointLocks> locks_;  // constant after Open

  Mutex submit_mu_ ABSL_ACQUIRED_BEFORE(mu_);  // held while a submission looks at files
  Mutex file_mu_ ABSL_ACQUIRED_BEFORE(mu_);    // held while files are written

  mutable Mutex mu_;
  std::unique_ptr<MetadataStore> store_ ABSL_GUARDED_BY(mu_);
  ClusterState state_ ABSL_GUARDED_BY(mu_);
  JobNews news_ ABSL_GUARDED_BY(mu_);
  std::vector<MetadataChange> unsaved_ ABSL_GUARDED_BY(mu_);
  std::vector<FileWork> work_ ABSL_GUARDED_BY(mu_);
  std::multiset<uint64_t> doing_ ABSL_GUARDED_BY(mu_);  // jobs of work that is being done
  uint64_t changes_ ABSL_GUARDED_BY(mu_) = 0;           // those who wait look at everything again
  SchedulerCounters counters_ ABSL_GUARDED_BY(mu_);
  int calls_ ABSL_GUARDED_BY(mu_) = 0;
  bool opened_ ABSL_GUARDED_BY(mu_) = false;  // state_ is the store's, and serves
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  bool refused_ ABSL_GUARDED_BY(mu_) = false;  // an append failed since the last tick
};

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_SCHEDULER_IMPL_H_

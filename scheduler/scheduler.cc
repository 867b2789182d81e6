#include "scheduler/scheduler.h"

#include <algorithm>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/core/mutex.h"
#include "proto/job/dram_limit.h"
#include "proto/job/job_spec.h"
#include "proto/runtime/base/failpoints.h"
#include "proto/runtime/base/timer.h"
#include "proto/runtime/files/manifest_io.h"
#include "proto/runtime/files/path_policy.h"
#include "scheduler/cluster_state.h"
#include "scheduler/job/news.h"
#include "scheduler/nodes/placement.h"
#include "scheduler/store/event_log.h"
#include "scheduler/store/submission.h"

namespace strata::scheduler {
namespace {

constexpr absl::Duration kMaxEventsWait = absl::Seconds(10);

class SchedulerImpl : public Scheduler {
 public:
  explicit SchedulerImpl(SchedulerOptions options)
      : timer_(options.timer),
        lease_(options.lease),
        tick_interval_(std::min(options.tick_interval, options.lease / 16)),
        version_(std::move(options.version)),
        paths_(std::move(options.paths)),
        store_(std::move(options.store)),
        state_(options.lease),
        news_(std::move(options.log)) {}

  ~SchedulerImpl() override {
    Stop();
    if (ticker_.joinable()) ticker_.join();
    // Calls that were waiting are on their way out.
    MutexLock lock(&mu_);
    mu_.Await(absl::Condition(
        +[](int* calls) { return *calls == 0; }, &calls_));
  }

  absl::Status Open() {
    {
      MutexLock lock(&mu_);
      auto records = store_->Read();
      if (!records.ok()) return records.status();
      if (absl::Status s = state_.Restore(*records, timer_->Now()); !s.ok()) return s;
      state_.Started(timer_->Now());
      state_.Tick(timer_->Now());
      if (absl::Status s = Save(); !s.ok()) return s;
    }
    DoFileWork();
    if (tick_interval_ > absl::ZeroDuration()) ticker_ = std::thread([this] { RunTicker(); });
    return absl::OkStatus();
  }

  absl::StatusOr<NodeDirective> Sync(const NodeReport& report, absl::Duration timeout) override {
    const Call call(this);
    // A node must be heard of three times per lease, so that no poll is held for longer.
    const absl::Time deadline =
        timer_->Now() + std::min({absl::Milliseconds(report.wait_ms()), timeout, lease_ / 3});
    uint64_t session = 0;
    {
      MutexLock lock(&mu_);
      ++counters_.syncs;
      if (absl::Status s = Ready(); !s.ok()) return s;
      auto reported = state_.Report(report, timer_->Now());
      if (absl::Status s = Save(); !s.ok()) return s;
      if (!reported.ok()) {
        counters_.fenced += absl::IsUnauthenticated(reported.status());
        return reported.status();
      }
      session = *reported;
    }
    DoFileWork();
    MutexLock lock(&mu_);
    while (true) {
      if (absl::Status s = Ready(); !s.ok()) return s;
      auto version = state_.Directive(report.name(), session, /*version_only=*/true);
      if (!version.ok()) {
        ++counters_.fenced;
        return version.status();
      }
      if (report.session() == 0 || version->version() > report.seen_version()) break;
      if (timer_->Now() >= deadline) {
        version->set_session(session);
        version->set_lease_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(lease_)));
        version->set_unchanged(true);
        return version;
      }
      AwaitChange(deadline);
    }
    return state_.Directive(report.name(), session, /*version_only=*/false);
  }

  absl::StatusOr<SubmitReply> Submit(const SubmitRequest& request, absl::Duration) override {
    const Call call(this);
    SubmitRequest resolved = request;
    if (absl::Status s = ResolveJob(*resolved.mutable_job()); !s.ok()) return s;
    if (absl::Status s = CheckReplicas(resolved.job().spec()); !s.ok()) return s;
    if (absl::Status s = CheckDramLimit(resolved.job().spec()); !s.ok()) return s;
    // One at a time, so that nobody takes the name while the directory is looked at.
    MutexLock one(&submit_mu_);
    {
      MutexLock lock(&mu_);
      if (absl::Status s = Ready(); !s.ok()) return s;
      auto known = state_.CheckSubmit(resolved.request_id(), resolved.job());
      if (!known.ok()) return known.status();
      if (known->has_value()) return Reply(**known);
    }
    auto found = PrepareCheckpoints(resolved, paths_);
    if (!found.ok()) return found.status();
    MutexLock lock(&mu_);
    if (absl::Status s = Ready(); !s.ok()) return s;
    auto job = state_.Submit({.request_id = resolved.request_id(),
                              .job = resolved.job(),
                              .resume = resolved.resume(),
                              .complete = std::move(found->complete),
                              .replaced = std::move(found->replaced)},
                             timer_->Now());
    if (absl::Status s = Save(); !s.ok()) return s;
    if (!job.ok()) return job.status();
    return Reply(*job);
  }

  absl::StatusOr<JobStatus> GetJob(const JobRef& ref, absl::Duration) override {
    MutexLock lock(&mu_);
    if (absl::Status s = Ready(); !s.ok()) return s;
    auto job = state_.FindJob(ref);
    if (!job.ok()) return job.status();
    return state_.Status(*job, timer_->Now());
  }

  absl::StatusOr<ListJobsReply> ListJobs(absl::Duration) override {
    MutexLock lock(&mu_);
    if (absl::Status s = Ready(); !s.ok()) return s;
    return state_.Jobs(timer_->Now());
  }

  absl::StatusOr<JobStatus> CancelJob(const JobRef& ref, absl::Duration) override {
    const Call call(this);
    JobStatus status;
    {
      MutexLock lock(&mu_);
      if (absl::Status s = Ready(); !s.ok()) return s;
      auto job = state_.FindJob(ref);
      if (!job.ok()) return job.status();
      if (absl::Status s = state_.Cancel(*job, timer_->Now()); !s.ok()) return s;
      if (absl::Status s = Save(); !s.ok()) return s;
      status = state_.Status(*job, timer_->Now());
    }
    DoFileWork();
    return status;
  }

  absl::StatusOr<CreateCheckpointReply> CreateCheckpoint(const CreateCheckpointRequest& request,
                                                         absl::Duration timeout) override {
    const Call call(this);
    const absl::Time deadline =
        timer_->Now() + std::min(absl::Milliseconds(request.wait_ms()), timeout);
    MutexLock lock(&mu_);
    if (absl::Status s = Ready(); !s.ok()) return s;
    auto job = state_.FindJob(request.job());
    if (!job.ok()) return job.status();
    auto ticket = state_.WantCheckpoint(*job, timer_->Now());
    if (!ticket.ok()) return ticket.status();
    if (absl::Status s = Save(); !s.ok()) return s;
    while (true) {
      if (auto result = state_.CheckpointResult(*job, *ticket)) {
        if (!result->ok()) return result->status();
        CreateCheckpointReply reply;
        reply.set_directory((*result)->folder());
        reply.set_step((*result)->step());
        reply.set_model_hash((*result)->model_hash());
        return reply;
      }
      if (absl::Status s = Ready(); !s.ok()) return s;
      if (timer_->Now() >= deadline) {
        return absl::DeadlineExceededError(
            absl::StrCat("the checkpoint is not complete after ", request.wait_ms(),
                         " ms; it goes on, and appears in spec.checkpoint.directory when it is"));
      }
      AwaitChange(deadline);
    }
  }

  absl::StatusOr<ClusterStatus> GetCluster(absl::Duration) override {
    MutexLock lock(&mu_);
    if (absl::Status s = Ready(); !s.ok()) return s;
    ClusterStatus status = state_.Cluster();
    for (NodeStatus& node : *status.mutable_nodes()) {
      const absl::Time seen = absl::FromUnixMillis(node.last_seen_unix_ms());
      node.set_last_seen_unix_ms(absl::ToUnixMillis(timer_->Wall(seen)));
    }
    status.set_scheduler_version(version_);
    return status;
  }

  absl::StatusOr<JobShards> GetShards(const JobRef& ref, absl::Duration) override {
    MutexLock lock(&mu_);
    if (absl::Status s = Ready(); !s.ok()) return s;
    auto job = state_.FindJob(ref);
    if (!job.ok()) return job.status();
    return state_.Shards(*job);
  }

  absl::StatusOr<GetEventsReply> GetEvents(const GetEventsRequest& request,
                                           absl::Duration timeout) override {
    const Call call(this);
    const absl::Time deadline =
        timer_->Now() + std::min({absl::Milliseconds(request.wait_ms()), kMaxEventsWait, timeout});
    MutexLock lock(&mu_);
    if (absl::Status s = Ready(); !s.ok()) return s;
    absl::StatusOr<uint64_t> job = uint64_t{0};
    if (request.has_job()) job = state_.FindJob(request.job());
    if (!job.ok()) return job.status();
    const int64_t since = SinceUnixMs(request, timer_->Now());
    while (true) {
      if (absl::Status s = Ready(); !s.ok()) return s;
      GetEventsReply reply = state_.Events(request.after_sequence(), *job, since);
      if (reply.events_size() > 0 || timer_->Now() >= deadline) return reply;
      AwaitChange(deadline);
    }
  }

  void Stop() override {
    MutexLock lock(&mu_);
    stopped_ = true;
  }

  void Tick() override {
    const Call call(this);
    {
      MutexLock lock(&mu_);
      if (stopped_) return;
      // Calls of nodes are refused while the store takes nothing, and were if it did not.
      const bool ready = Ready().ok();
      if (std::exchange(refused_, false) || !ready) state_.Deaf();
      if (!ready) return;
      state_.Tick(timer_->Now());
      if (!Save().ok()) return;
    }
    DoFileWork();
  }

  SchedulerCounters Counters() const override {
    MutexLock lock(&mu_);
    SchedulerCounters c = counters_;
    for (const auto& [name, node] : state_.members().nodes()) {
      if (!node.alive) continue;
      ++(node.record.role() == SERVER ? c.live_servers : c.live_workers);
    }
    for (const auto& [id, job] : state_.jobs()) {
      c.rollbacks += job->state().rollbacks();
      const JobState s = job->state().state();
      ++(s == PENDING     ? c.jobs_pending
         : s == SUCCEEDED ? c.jobs_succeeded
         : s == FAILED    ? c.jobs_failed
         : s == CANCELLED ? c.jobs_cancelled
                          : c.jobs_running);
    }
    return c;
  }

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

  static SubmitReply Reply(uint64_t job) {
    SubmitReply reply;
    reply.set_job(job);
    return reply;
  }

  // Nothing is shown while something of it is not in the store.
  absl::Status Ready() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (stopped_) return absl::UnavailableError("the scheduler is stopping");
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
  // next event tries again.
  absl::Status Save() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    for (MetadataChange& change : state_.TakeChanges()) unsaved_.push_back(std::move(change));
    if (!unsaved_.empty()) {
      ++counters_.appends;
      if (absl::Status s = store_->Append(unsaved_); !s.ok()) {
        ++counters_.append_failures;
        refused_ = true;
        return absl::UnavailableError(
            absl::StrCat("the scheduler cannot record its state: ", s.message()));
      }
      unsaved_.clear();
    }
    for (FileWork& work : state_.TakeFileWork()) work_.push_back(std::move(work));
    news_.Tell(state_.jobs());
    ++changes_;
    return absl::OkStatus();
  }

  void DoFileWork() {
    MutexLock one(&file_mu_);
    while (true) {
      std::vector<FileWork> work;
      {
        MutexLock lock(&mu_);
        work = std::exchange(work_, {});
      }
      if (work.empty()) return;
      for (const FileWork& w : work) std::visit([this](const auto& v) { Do(v); }, w);
    }
  }

  void Do(const WriteManifestWork& work) {
    const absl::Status status = WriteManifest(work.folder, work.manifest);
    MutexLock lock(&mu_);
    state_.ManifestWritten(work.job, work.cut, status, timer_->Now());
    Save().IgnoreError();  // Ready tries again before anything is shown
  }
  // What cannot be removed stays: it is no longer counted on, and --overwrite takes it later.
  void Do(const RemoveCheckpointWork& work) {
    absl::Status status = Failpoint("scheduler.checkpoint.remove");
    if (status.ok()) status = RemoveCheckpoint(work.folder);
    // A manifest that cannot be read names nothing to remove.
    if (absl::IsDataLoss(status) || absl::IsUnimplemented(status)) status = absl::OkStatus();
    MutexLock lock(&mu_);
    state_.CheckpointRemoved(work.job, work.folder, status, timer_->Now());
    Save().IgnoreError();
  }
  void Do(const RemoveIncompleteWork& work) {
    RemoveIncomplete(work.folder, work.names).IgnoreError();
  }

  void RunTicker() {
    while (true) {
      {
        MutexLock lock(&mu_);
        const absl::Time next = timer_->Now() + tick_interval_;
        if (AwaitUntil(timer_, &mu_, absl::Condition(&stopped_), next)) return;
      }
      Tick();
    }
  }

  Timer* const timer_;
  const absl::Duration lease_;
  const absl::Duration tick_interval_;
  const std::string version_;
  const PathPolicy paths_;
  std::thread ticker_;

  Mutex submit_mu_ ABSL_ACQUIRED_BEFORE(mu_);  // held while a submission looks at files
  Mutex file_mu_ ABSL_ACQUIRED_BEFORE(mu_);    // held while files are written

  mutable Mutex mu_;
  std::unique_ptr<MetadataStore> store_ ABSL_GUARDED_BY(mu_);
  ClusterState state_ ABSL_GUARDED_BY(mu_);
  JobNews news_ ABSL_GUARDED_BY(mu_);
  std::vector<MetadataChange> unsaved_ ABSL_GUARDED_BY(mu_);
  std::vector<FileWork> work_ ABSL_GUARDED_BY(mu_);
  uint64_t changes_ ABSL_GUARDED_BY(mu_) = 0;  // those who wait look at everything again
  SchedulerCounters counters_ ABSL_GUARDED_BY(mu_);
  int calls_ ABSL_GUARDED_BY(mu_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  bool refused_ ABSL_GUARDED_BY(mu_) = false;  // an append failed since the last tick
};

}  // namespace

absl::StatusOr<std::unique_ptr<Scheduler>> Scheduler::Start(SchedulerOptions options) {
  if (options.store == nullptr) return absl::InvalidArgumentError("options.store is missing");
  if (options.lease < absl::Milliseconds(10)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the lease is ", absl::FormatDuration(options.lease), "; it must be at least 10ms"));
  }
  auto scheduler = std::make_unique<SchedulerImpl>(std::move(options));
  if (absl::Status s = scheduler->Open(); !s.ok()) return s;
  return std::unique_ptr<Scheduler>(std::move(scheduler));
}

}  // namespace strata::scheduler

// Scheduler: how it begins and goes on.
#include "scheduler/scheduler_impl.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/core/mutation.h"
#include "proto/runtime/files/may_pass.h"
#include "scheduler/store/checkpoint_locks.h"
#include "scheduler/store/submission.h"

namespace strata::scheduler {

SchedulerImpl::~SchedulerImpl() {
  Stop();
  if (ticker_.joinable()) ticker_.join();
  {
    // Calls that were waiting are on their way out.
    MutexLock lock(&mu_);
    mu_.Await(absl::Condition(
        +[](int* calls) { return *calls == 0; }, &calls_));
  }
  files_.Drain();
  GiveLocksBack();
}

absl::Status SchedulerImpl::Open() {
  {
    MutexLock lock(&mu_);
    auto records = store_->Read();
    if (!records.ok()) return records.status();
    if (absl::Status s = state_.Restore(*records, timer_->Now()); !s.ok()) return s;
    if (cluster_.has_value() && state_.cluster_id() != cluster_->text()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "this scheduler's folder (--dir) is of cluster ", state_.cluster_id(),
          ", and its certificate (--certs) of cluster ", cluster_->text(),
          "; give it a certificate of the folder's cluster (strata certs init --cluster), or a new "
          "folder"));
    }
    state_.AwaitLocks();
    if (!restored_) state_.Started(timer_->Now(), DrawId<StartId>(*ids_));
    locks_ = std::make_unique<CheckpointLocks>(
        CheckpointLocks::Options{.cluster_id = state_.cluster_id(),
                                 .term = state_.term(),
                                 .starts = state_.starts(),
                                 .lease = lease_,
                                 .clock = timer_,
                                 .work = &files_,
                                 .done = [this] { OnLockWork(); }});
    if (restored_) {
      state_.Hear(timer_->Now());
    } else {
      state_.Tick(timer_->Now());
      if (absl::Status s = Save(); !s.ok()) return s;
      opened_ = true;
    }
  }
  TendFiles();
  if (tick_interval_ > absl::ZeroDuration()) ticker_ = std::thread([this] { RunTicker(); });
  return absl::OkStatus();
}

void SchedulerImpl::LookForCheckpoints() {
  if (!found_) {
    found_.emplace();
    found_->give_up = timer_->Now() + JobWork::kPatience;
    for (const ClusterState::JobFolder& job : state_.CheckpointFolders()) {
      found_->missing[job.job] = {.of = job, .again = true};
    }
  }
  for (auto& [id, missing] : found_->missing) {
    if (!std::exchange(missing.again, false)) continue;
    files_.Post(absl::StrCat("look ", missing.of.folder), JobWork::Begins::kInOrder,
                [this, of = missing.of] {
                  FoundOwn(of.job, FindOwnCheckpoints(of.folder, of.identity, of.replaced));
                });
  }
}

void SchedulerImpl::FoundOwn(uint64_t job, absl::StatusOr<OwnCheckpoints> own) {
  MutexLock lock(&mu_);
  if (!found_) return;  // it came too late
  if (own.ok()) {
    found_->missing.erase(job);
    absl::StatusOr<FoundInDirectory> found =
        FoundInDirectory{.complete = std::move(own->complete), .damaged = std::move(own->damaged)};
    if (!own->other_format.ok()) found = own->other_format;
    found_->found.insert_or_assign(job, std::move(found));
    return;
  }
  // The newest may be among those that cannot be read now.
  FoundOfJobs::Missing& missing = found_->missing[job];
  missing.why = std::string(own.status().message());
  missing.again = MayPass(own.status());
  missing.final = !missing.again;
}

bool SchedulerImpl::MaySpeak() {
  {
    MutexLock lock(&mu_);
    if (!state_.hearing()) return true;
    if (stopped_ || !state_.HeardEnough(timer_->Now())) return false;
    LookForCheckpoints();
  }
  if (await_files_) files_.Drain();
  MutexLock lock(&mu_);
  if (stopped_) return false;
  if (!state_.hearing()) return true;
  const auto& missing = found_->missing;
  const bool waits =
      std::any_of(missing.begin(), missing.end(), [](const auto& of) { return !of.second.final; });
  if (waits && timer_->Now() < found_->give_up) return false;
  const FoundOfJobs found = *std::exchange(found_, std::nullopt);
  state_.GoOn(found.found, timer_->Now(), DrawId<StartId>(*ids_));
  locks_->SetTerm(state_.term(), state_.starts());
  opened_ = true;
  for (const auto& [job, missing] : found.missing) {
    LockNews news{.kind = LockNews::Kind::kStalls, .job = job};
    news.text =
        absl::StrCat(missing.why.empty() ? absl::StrCat("spec.checkpoint.directory ",
                                                        missing.of.folder, " did not answer for ",
                                                        absl::FormatDuration(JobWork::kPatience))
                                         : missing.why,
                     ": the job goes on from checkpoints that the older copy knows");
    state_.OnLock(news, timer_->Now());
  }
  Save().IgnoreError();  // Ready tries again before anything is shown
  return true;
}

void SchedulerImpl::Tick() {
  const Call call(this);
  if (!MaySpeak()) return;
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
  TendFiles();
}

SchedulerCounters SchedulerImpl::Counters() const {
  MutexLock lock(&mu_);
  SchedulerCounters c = counters_;
  for (const auto& [name, node] : state_.members().nodes()) {
    if (!node.alive) continue;
    ++(node.record.role() == SERVER ? c.live_servers : c.live_workers);
  }
  c.quarantined = state_.quarantined();
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

void SchedulerImpl::Stop() {
  looks_.Stop();
  MutexLock lock(&mu_);
  if (std::exchange(stopped_, true) || !opened_) return;
  state_.KeepTimes(timer_->Now());
  Save().IgnoreError();  // as if it was killed
}

absl::Status SchedulerImpl::Save() {
  const bool all_saved = unsaved_.empty();
  unsaved_.Add(state_.TakeChanges());
  if (!unsaved_.empty()) {
    ++counters_.appends;
    const absl::Status s = store_->Append(unsaved_.changes());
    if (!s.ok()) ++counters_.append_failures;
    if (!s.ok() && !(all_saved && state_.took_times_alone()) &&
        !STRATA_MUTATION("scheduler.tells_before_it_records")) {
      refused_ = true;
      return absl::UnavailableError(
          absl::StrCat("the scheduler cannot record its state: ", s.message()));
    }
    unsaved_.Clear();
  }
  for (FileWork& work : state_.TakeFileWork()) work_.Add(std::move(work));
  PostFiles();
  news_.Tell(state_.jobs());
  ++changes_;
  return absl::OkStatus();
}

void SchedulerImpl::RunTicker() {
  while (true) {
    {
      MutexLock lock(&mu_);
      const absl::Time next = timer_->Now() + tick_interval_;
      if (AwaitUntil(timer_, &mu_, absl::Condition(&stopped_), next)) return;
    }
    Tick();
  }
}

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

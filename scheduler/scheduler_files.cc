// The scheduler's work on files: manifests and removals, and the locks without which it does none.
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/runtime/base/failpoints.h"
#include "proto/runtime/base/job_work.h"
#include "proto/runtime/files/finished_file.h"
#include "proto/runtime/files/manifest_io.h"
#include "scheduler/job/file_queue.h"
#include "scheduler/job/machine.h"
#include "scheduler/scheduler_impl.h"
#include "scheduler/store/checkpoint_lock.h"
#include "scheduler/store/checkpoint_locks.h"
#include "scheduler/store/submission.h"

namespace strata::scheduler {
namespace {

using May = CheckpointLockMachine::May;
using Phase = CheckpointLockMachine::Phase;

absl::Status Refused(May may) {
  if (may == May::kYes) return absl::OkStatus();
  return absl::FailedPreconditionError("spec.checkpoint.directory is another job's now");
}

// Whether another checkpoint lies there than the one that is to be removed.
bool IsAnother(const RemoveCheckpointWork& work) {
  if (!work.meant) return false;
  const auto there = ReadManifest(work.folder);
  if (!there.ok()) return false;
  return there->cluster_id() != work.meant->cluster_id || there->job_uid() != work.meant->job_uid ||
         there->generation() != work.meant->generation || there->cut() != work.meant->cut;
}

}  // namespace

std::vector<LockedJob> SchedulerImpl::LockedJobs() const {
  const std::set<uint64_t> busy = work_.Jobs();
  return state_.LockedJobs({busy.begin(), busy.end()});
}

void SchedulerImpl::TendFiles() {
  TendLocks();
  if (!await_files_) return;
  files_.Drain();
  TendLocks();
  files_.Drain();
}

void SchedulerImpl::TendLocks() {
  {
    MutexLock lock(&mu_);
    if (stopped_ || state_.hearing()) return;
    locks_->Want(LockedJobs());
  }
  locks_->Work();
  TellOfLocks();
  MutexLock lock(&mu_);
  PostFiles();
}

void SchedulerImpl::TellOfLocks() {
  MutexLock lock(&mu_);
  if (stopped_ || state_.hearing()) return;
  const std::vector<LockNews> news = locks_->TakeNews();
  if (news.empty()) return;
  for (const LockNews& n : news) {
    if (!LookAgain(n)) state_.OnLock(n, timer_->Now());
  }
  Save().IgnoreError();  // Ready tries again before anything is shown
}

bool SchedulerImpl::LookAgain(const LockNews& news) {
  std::erase_if(waited_, [this](const auto& waited) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const auto job = state_.jobs().find(waited.first);
    return job == state_.jobs().end() || job->second->over();
  });
  const auto waited = waited_.find(news.job);
  if (news.kind != LockNews::Kind::kHeld || waited == waited_.end()) return false;
  const auto look = [this, news, request = std::move(waited->second)] {
    auto found = looks_.LookHere(request);
    absl::StatusOr<std::vector<CheckpointRecord>> complete = std::vector<CheckpointRecord>();
    if (found.ok()) {
      complete = std::move(found->complete);
    } else {
      complete = found.status();
    }
    MutexLock lock(&mu_);
    if (stopped_) return;
    const absl::Time now = timer_->Now();
    state_.FoundAgain(news.job, std::move(complete),
                      found.ok() ? found->replaced : std::vector<std::string>(),
                      found.ok() ? found->resume_schema : std::nullopt, now);
    state_.OnLock(news, now);
    Save().IgnoreError();  // Ready tries again before anything is shown
  };
  waited_.erase(waited);
  files_.Post(absl::StrCat("job ", news.job), JobWork::Begins::kInOrder, look);
  return true;
}

void SchedulerImpl::OnLockWork() {
  TellOfLocks();
  MutexLock lock(&mu_);
  ++lock_works_;
  PostFiles();
}

void SchedulerImpl::GiveLocksBack() {
  if (locks_ == nullptr) return;
  {
    // Where the cluster ends with this object, nobody writes any more.
    MutexLock lock(&mu_);
    locks_->Want(transient_ ? std::vector<LockedJob>() : state_.LockedJobs({}));
  }
  locks_->Work();
  files_.Drain();
}

void SchedulerImpl::AwaitEnded(const std::string& directory, absl::Time deadline) {
  const absl::Time give_up = std::min(deadline, timer_->Now() + lease_ / 2);
  while (timer_->Now() < give_up) {
    MutexLock lock(&mu_);
    const std::vector<LockedJob> jobs = LockedJobs();
    const bool ends = std::any_of(jobs.begin(), jobs.end(), [&directory](const LockedJob& job) {
      return job.over && job.directory == directory;
    });
    if (!ends || stopped_) return;
    AwaitUntil(timer_, &mu_, absl::Condition(&stopped_), timer_->Now() + lease_ / 200);
  }
}

absl::StatusOr<CheckpointLocks::View> SchedulerImpl::AskForLock(const TrainingJob& job,
                                                                const JobUid& uid,
                                                                absl::Time deadline) {
  const std::string& directory = job.spec().checkpoint().directory();
  if (directory.empty()) return CheckpointLocks::View();
  AwaitEnded(directory, deadline);
  TendFiles();
  locks_->Ask({.uid = uid.text(), .name = job.metadata().name(), .directory = directory});
  const absl::Time begin = timer_->Now();
  const absl::Time give_up = std::min(deadline, begin + 2 * lease_ / 3);
  uint64_t seen = 0;
  const auto worked = [this, &seen]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return stopped_ || lock_works_ != seen;
  };
  while (true) {
    {
      MutexLock lock(&mu_);
      seen = lock_works_;
    }
    locks_->Work();
    if (await_files_) files_.Drain();
    const CheckpointLocks::View view = locks_->Of(uid.text());
    if (view.phase == Phase::kHeld) return view;
    if (view.phase == Phase::kRefused || view.phase == Phase::kSuperseded)
      return absl::FailedPreconditionError(view.why);
    if (!view.error.ok()) return absl::Status(view.error.code(), view.why);
    if (timer_->Now() >= give_up) {
      if (view.phase == Phase::kWaiting) return view;
      return absl::DeadlineExceededError(
          absl::StrCat("spec.checkpoint.directory ", directory, " did not answer for ",
                       absl::FormatDuration(timer_->Now() - begin),
                       ": its file system hangs or is slow; see whether its mount answers on the "
                       "scheduler's machine, and submit again"));
    }
    MutexLock lock(&mu_);
    if (absl::Status s = Ready(); !s.ok()) return s;
    AwaitUntil(timer_, &mu_, absl::Condition(&worked),
               std::min(give_up, timer_->Now() + lease_ / 50));
  }
}

void SchedulerImpl::PostFiles() {
  if (stopped_) return;
  const auto may = [this](const FileWork& w) {
    return std::holds_alternative<EmptyFileWork>(w) || locks_->MayWrite(JobOf(w)) != May::kNotNow;
  };
  for (const uint64_t job : work_.Begin(may)) {
    files_.Post(absl::StrCat("job ", job), JobWork::Begins::kInOrder,
                [this, job] { DoFiles(job); });
  }
}

void SchedulerImpl::DoFiles(uint64_t job) {
  bool done = true;
  const FileWork* work = nullptr;
  const auto next = [&]() -> const FileWork* {
    MutexLock lock(&mu_);
    if (work != nullptr && done) work_.Done(job);
    if (done) return work_.First(job);
    work_.PutOff(job);
    PostFiles();  // its lock may have come meanwhile
    return nullptr;
  };
  while ((work = next()) != nullptr) {
    done = std::visit([this](const auto& w) { return Do(w); }, *work);
  }
}

bool SchedulerImpl::Do(const WriteManifestWork& work) {
  const May may = locks_->MayWrite(work.job);
  if (may == May::kNotNow) return false;
  absl::Status status = Refused(may);
  if (status.ok()) status = CheckFinished(work.folder, work.manifest);
  if (status.ok()) {
    const auto still = locks_->LookAgain(work.job);  // that may have taken long
    if (still.ok() && *still == May::kNotNow) return false;
    status = still.ok() ? Refused(*still) : still.status();
  }
  if (status.ok()) status = WriteManifest(work.folder, work.manifest);
  MutexLock lock(&mu_);
  state_.ManifestWritten(work.job, work.cut, status, timer_->Now());
  Save().IgnoreError();  // Ready tries again before anything is shown
  return true;
}

bool SchedulerImpl::Do(const RemoveCheckpointWork& work) {
  const May may = locks_->MayWrite(work.job);
  if (may == May::kNotNow) return false;
  absl::Status status = Failpoint("scheduler.checkpoint.remove");
  if (status.ok()) status = Refused(may);
  if (status.ok()) {
    const auto still = locks_->LookAgain(work.job);
    if (still.ok() && *still == May::kNotNow) return false;
    status = still.ok() ? Refused(*still) : still.status();
  }
  if (status.ok() && !IsAnother(work)) status = RemoveCheckpoint(work.folder);
  // A manifest that cannot be read names nothing to remove.
  if (absl::IsDataLoss(status) || absl::IsUnimplemented(status)) status = absl::OkStatus();
  MutexLock lock(&mu_);
  state_.CheckpointRemoved(work.job, work.folder, status, timer_->Now());
  Save().IgnoreError();
  return true;
}

bool SchedulerImpl::Do(const EmptyFileWork& work) {
  const absl::Status status = EmptyFile(work.path);
  MutexLock lock(&mu_);
  state_.CheckpointRemoved(work.job, work.path, status, timer_->Now());
  Save().IgnoreError();
  return true;
}

bool SchedulerImpl::Do(const RemoveIncompleteWork& work) {
  const May may = locks_->MayWrite(work.job);
  if (may == May::kNotNow) return false;
  if (Refused(may).ok()) RemoveIncomplete(work.folder, work.names).IgnoreError();
  return true;
}

}  // namespace strata::scheduler

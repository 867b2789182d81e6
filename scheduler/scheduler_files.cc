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
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/runtime/base/failpoints.h"
#include "proto/runtime/files/finished_file.h"
#include "proto/runtime/files/manifest_io.h"
#include "scheduler/scheduler_impl.h"
#include "scheduler/store/checkpoint_lock.h"
#include "scheduler/store/checkpoint_locks.h"
#include "scheduler/store/submission.h"

namespace strata::scheduler {
namespace {

using May = CheckpointLockMachine::May;
using Phase = CheckpointLockMachine::Phase;

uint64_t JobOf(const FileWork& work) {
  return std::visit([](const auto& w) { return w.job; }, work);
}

absl::Status Refused(May may) {
  if (may == May::kYes) return absl::OkStatus();
  return absl::FailedPreconditionError("spec.checkpoint.directory is another job's now");
}

}  // namespace

std::vector<LockedJob> SchedulerImpl::LockedJobs() const {
  std::multiset<uint64_t> busy = doing_;
  for (const FileWork& work : work_) busy.insert(JobOf(work));
  return state_.LockedJobs(busy);
}

void SchedulerImpl::TendLocks() {
  {
    MutexLock lock(&mu_);
    if (stopped_ || state_.hearing()) return;
    locks_->Want(LockedJobs());
  }
  locks_->Work();
  const std::vector<LockNews> news = locks_->TakeNews();
  if (news.empty()) return;
  MutexLock lock(&mu_);
  for (const LockNews& n : news) state_.OnLock(n, timer_->Now());
  Save().IgnoreError();  // Ready tries again before anything is shown
}

void SchedulerImpl::GiveLocksBack() {
  if (locks_ == nullptr) return;
  {
    // Where the cluster ends with this object, nobody writes any more.
    MutexLock lock(&mu_);
    locks_->Want(transient_ ? std::vector<LockedJob>() : state_.LockedJobs({}));
  }
  locks_->Work();
}

void SchedulerImpl::AwaitEnded(const std::string& directory) {
  const absl::Time give_up = timer_->Now() + lease_ / 2;
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
                                                                const JobUid& uid) {
  const std::string& directory = job.spec().checkpoint().directory();
  if (directory.empty()) return CheckpointLocks::View();
  AwaitEnded(directory);
  TendLocks();
  locks_->Ask({.uid = uid.text(), .name = job.metadata().name(), .directory = directory});
  const absl::Time give_up = timer_->Now() + 2 * lease_ / 3;
  while (true) {
    locks_->Work();
    const CheckpointLocks::View view = locks_->Of(uid.text());
    if (view.phase == Phase::kHeld) return view;
    if (view.phase == Phase::kRefused) return absl::FailedPreconditionError(view.why);
    if (!view.error.ok()) return absl::Status(view.error.code(), view.why);
    if (timer_->Now() >= give_up) return view;
    MutexLock lock(&mu_);
    if (absl::Status s = Ready(); !s.ok()) return s;
    AwaitUntil(timer_, &mu_, absl::Condition(&stopped_), timer_->Now() + lease_ / 50);
  }
}

void SchedulerImpl::DoNow(std::vector<FileWork> work, std::vector<FileWork>& later) {
  for (FileWork& w : work) {
    if (!std::visit([this](const auto& v) { return Do(v); }, w)) {
      later.push_back(std::move(w));
      continue;
    }
    MutexLock lock(&mu_);
    doing_.erase(doing_.find(JobOf(w)));
  }
}

void SchedulerImpl::DoFileWork() {
  TendLocks();
  {
    MutexLock one(&file_mu_);
    std::vector<FileWork> later;
    while (true) {
      std::vector<FileWork> work;
      {
        MutexLock lock(&mu_);
        work = std::exchange(work_, {});
        for (const FileWork& w : work) doing_.insert(JobOf(w));
        if (work.empty()) {
          for (const FileWork& w : later) doing_.erase(doing_.find(JobOf(w)));
          work_ = std::move(later);
          break;
        }
      }
      DoNow(std::move(work), later);
    }
  }
  TendLocks();
}

bool SchedulerImpl::Do(const WriteManifestWork& work) {
  const May may = locks_->MayWrite(work.job);
  if (may == May::kNotNow) return false;
  absl::Status status = Refused(may);
  if (status.ok()) status = CheckFinished(work.folder, work.manifest);
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
  if (status.ok()) status = RemoveCheckpoint(work.folder);
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

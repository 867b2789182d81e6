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
#include "proto/core/mutation.h"
#include "proto/runtime/base/failpoints.h"
#include "proto/runtime/base/job_work.h"
#include "proto/runtime/files/finished_file.h"
#include "proto/runtime/files/leftovers.h"
#include "proto/runtime/files/manifest_io.h"
#include "scheduler/job/file_queue.h"
#include "scheduler/job/machine.h"
#include "scheduler/scheduler_impl.h"
#include "scheduler/state/checkpoint_identity.h"
#include "scheduler/store/checkpoint_lock.h"
#include "scheduler/store/checkpoint_locks.h"
#include "scheduler/store/submission.h"
#include "scheduler/submit_times.h"

namespace strata::scheduler {
namespace {

using May = CheckpointLockMachine::May;
using Phase = CheckpointLockMachine::Phase;

absl::Status Refused(May may) {
  if (may == May::kYes) return absl::OkStatus();
  return absl::FailedPreconditionError("spec.checkpoint.directory is another job's now");
}

std::string Describe(const CheckpointIdentity& c) {
  return absl::StrCat("job ", c.job_uid(), " of cluster ", c.cluster_id(), ", generation ",
                      c.generation(), ", cut ", c.cut());
}

// Whether the checkpoint is there that is to be removed. ALREADY_EXISTS: another one is. NOT_FOUND:
// none is that can be read.
absl::Status CheckMeant(const RemoveCheckpointWork& work) {
  auto there = ReadManifest(work.folder);
  // A removal that was killed is gone on with where it was of the one that is meant.
  const bool begun = absl::IsNotFound(there.status());
  if (begun) there = ReadRemovedManifest(work.folder);
  // A manifest that cannot be read names nothing to remove.
  if (absl::IsDataLoss(there.status()) || absl::IsUnimplemented(there.status())) {
    return absl::NotFoundError(there.status().message());
  }
  if (!there.ok()) return there.status();
  const CheckpointIdentity is = IdentityOf(*there);
  const bool same = work.meant && Describe(is) == Describe(*work.meant);
  if (same || STRATA_MUTATION("checkpoint.removed_by_name")) return absl::OkStatus();
  if (begun) return absl::NotFoundError(absl::StrCat(work.folder, " holds no checkpoint"));
  return absl::AlreadyExistsError(
      absl::StrCat(work.folder, " was to be removed as ",
                   work.meant ? absl::StrCat("the checkpoint of ", Describe(*work.meant))
                              : std::string("one that could not be read"),
                   ", but holds that of ", Describe(is), "; it stays"));
}

absl::Status WriteEnd(const EndRunWork& work) {
  auto manifest = ReadManifest(work.folder);
  if (!manifest.ok()) return manifest.status();
  const CheckpointIdentity is = IdentityOf(*manifest);
  if (Describe(is) != Describe(work.meant)) {
    return absl::AlreadyExistsError(absl::StrCat(work.folder, " was of ", Describe(work.meant),
                                                 ", but is of ", Describe(is), "; it stays"));
  }
  DataProgress& end = *manifest->mutable_schema()->mutable_data()->mutable_end();
  end = work.end;
  end.set_bad_lines(manifest->bad_lines());
  return WriteManifest(work.folder, *manifest);
}

}  // namespace

std::vector<LockedJob> SchedulerImpl::LockedJobs() const {
  const std::set<uint64_t> busy = work_.Jobs();
  std::vector<LockedJob> jobs = state_.LockedJobs({busy.begin(), busy.end()});
  for (LockedJob& job : jobs) {
    if (const std::string does = work_.Describe(job.job); job.over && !does.empty()) {
      job.does = does;
    }
  }
  return jobs;
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
  std::vector<LockNews> news = locks_->TakeNews();
  for (auto& [job, due] : std::exchange(looks_due_, {})) news.push_back(due);
  if (news.empty()) return;
  for (const LockNews& n : news) {
    if (!LookAgain(n)) state_.OnLock(n, timer_->Now());
  }
  Save().IgnoreError();  // Ready tries again before anything is shown
}

bool SchedulerImpl::LookAgain(const LockNews& news) {
  if (news.kind != LockNews::Kind::kHeld) return false;
  auto look = state_.LooksAgain(news.job, news.number);
  if (!look) return false;
  files_.Post(absl::StrCat("job ", news.job), JobWork::Begins::kInOrder,
              [this, news, look = *std::move(look)] { LookNow(news, look); });
  return true;
}

void SchedulerImpl::LookNow(const LockNews& news, const ClusterState::DirectoryLook& look) {
  auto found = LookIn(look);
  MutexLock lock(&mu_);
  if (stopped_) return;
  const absl::Time now = timer_->Now();
  const CheckpointLocks::View held = locks_->Of(look.identity.job.text());
  // Of another number, or of one that another job has by now, there is other news.
  if (held.phase != Phase::kHeld || held.number != news.number) return;
  const bool passes = !found.ok() && MayPass(found.status());
  if (passes || locks_->MayWrite(news.job) != May::kYes) {
    looks_due_[news.job] = news;
    if (passes) {
      state_.OnLock({.kind = LockNews::Kind::kStalls,
                     .job = news.job,
                     .text = std::string(found.status().message())},
                    now);
    }
  } else {
    if (found.ok()) found->lock = news.number;
    state_.FoundAgain(news.job, std::move(found), now);
    state_.OnLock(news, now);
  }
  Save().IgnoreError();  // Ready tries again before anything is shown
}

absl::StatusOr<FoundInDirectory> SchedulerImpl::LookIn(
    const ClusterState::DirectoryLook& look) const {
  using Looks = JobMachine::Looks;
  FoundInDirectory found;
  if (look.looks != Looks::kForAny) {
    const std::string& directory = look.request.job().spec().checkpoint().directory();
    auto own = FindOwnCheckpoints(directory, look.identity, look.replaced);
    if (!own.ok()) return own.status();
    found.other_format = std::move(own->other_format);
    found.damaged = std::move(own->damaged);
    found.complete = std::move(own->complete);
    found.keep = look.looks == Looks::kForOwnFirst && found.complete.empty();
    if (!found.keep || !found.other_format.ok() || !look.request.resume()) return found;
  }
  auto any = looks_.LookHere(look.request);
  if (!any.ok()) return any.status();
  return FoundInDirectory{.complete = std::move(any->complete),
                          .damaged = std::move(any->damaged),
                          .replaced = std::move(any->replaced),
                          .resume_schema = std::move(any->resume_schema)};
}

uint64_t SchedulerImpl::LookedUnder(const JobUid& uid, const CheckpointLocks::View& asked) const {
  const CheckpointLocks::View now = locks_->Of(uid.text());
  const bool held = asked.phase == Phase::kHeld && now.phase == Phase::kHeld;
  return held && now.number == asked.number ? asked.number : 0;
}

std::string SchedulerImpl::NotHeld(const std::string& directory) {
  return absl::StrCat("the lock of spec.checkpoint.directory ", directory,
                      " was not held while that was looked at");
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

void SchedulerImpl::AwaitEnded(const std::string& directory, absl::Time give_up) {
  while (timer_->Now() < give_up) {
    MutexLock lock(&mu_);
    const std::vector<LockedJob> jobs = LockedJobs();
    const bool ends = std::any_of(jobs.begin(), jobs.end(), [&directory](const LockedJob& job) {
      return job.over && !job.leaves_writers && job.directory == directory;
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
  AwaitEnded(directory, AwaitEndedUntil(timer_->Now(), deadline, lease_));
  TendFiles();
  locks_->Ask({.uid = uid.text(), .name = job.metadata().name(), .directory = directory});
  const absl::Time begin = timer_->Now();
  const absl::Time give_up = AskForLockUntil(begin, deadline, lease_);
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
  absl::Status status = Failpoint("scheduler.checkpoint.manifest");
  if (status.ok()) status = Refused(may);
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

std::optional<absl::Status> SchedulerImpl::MayChange(uint64_t job, absl::string_view failpoint) {
  const May may = locks_->MayWrite(job);
  if (may == May::kNotNow) return std::nullopt;
  absl::Status status = Failpoint(failpoint);
  if (status.ok()) status = Refused(may);
  if (!status.ok()) return status;
  const auto still = locks_->LookAgain(job);
  if (still.ok() && *still == May::kNotNow) return std::nullopt;
  return still.ok() ? Refused(*still) : still.status();
}

bool SchedulerImpl::Do(const RemoveCheckpointWork& work) {
  const auto may = MayChange(work.job, "scheduler.checkpoint.remove");
  if (!may) return false;
  absl::Status status = *may;
  if (status.ok()) status = CheckMeant(work);
  if (status.ok()) status = RemoveCheckpoint(work.folder);
  if (absl::IsNotFound(status)) status = absl::OkStatus();
  Done(work.job, work.number, status);
  return true;
}

bool SchedulerImpl::Do(const EmptyFileWork& work) {
  Done(work.job, work.number, EmptyFile(work.path));
  return true;
}

bool SchedulerImpl::Do(const RemoveLeftoversWork& work) {
  const auto may = MayChange(work.job, "scheduler.leftovers.remove");
  if (!may) return false;
  const absl::Status status = may->ok() ? RemoveLeftovers(work.directory, work.over) : *may;
  MutexLock lock(&mu_);
  state_.LeftoversRemoved(work.job, work.number, status, timer_->Now());
  Save().IgnoreError();
  return true;
}

bool SchedulerImpl::Do(const EndRunWork& work) {
  const auto may = MayChange(work.job, "scheduler.run.end");
  if (!may) return false;
  const absl::Status status = may->ok() ? WriteEnd(work) : *may;
  MutexLock lock(&mu_);
  state_.RunEnded(work.job, status, timer_->Now());
  Save().IgnoreError();
  return true;
}

void SchedulerImpl::Done(uint64_t job, uint64_t removal, const absl::Status& status) {
  MutexLock lock(&mu_);
  state_.Removed(job, removal, status, timer_->Now());
  Save().IgnoreError();
}

}  // namespace strata::scheduler

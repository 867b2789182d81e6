// Scheduler: a job whose records are lost, made again of what servers keep of it.
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/core/uid.h"
#include "scheduler/scheduler_impl.h"
#include "scheduler/store/submission.h"
#include "scheduler/store/submission_looks.h"

namespace strata::scheduler {

// As a submission that resumes, but that the checkpoints are the job's own, and what it begins from
// may be with its servers.
absl::StatusOr<SettleQuarantineReply> SchedulerImpl::AdoptJob(const std::string& owner,
                                                              const std::string& job_uid,
                                                              absl::Duration timeout) {
  const auto uid = JobUid::Parse(job_uid);
  if (!uid) {
    return absl::InvalidArgumentError(
        absl::StrCat("job_uid is \"", job_uid, "\"; it must be 32 hexadecimal digits, not all 0"));
  }
  const absl::Time deadline = SubmitDeadline(timeout);
  SubmitRequest as_submitted;
  JobIdentity identity;
  {
    MutexLock lock(&mu_);
    if (absl::Status s = Ready(); !s.ok()) return s;
    auto spec = state_.CheckAdopt(job_uid);
    if (!spec.ok()) return spec.status();
    *as_submitted.mutable_job() = *std::move(spec);
    identity = ParseJobIdentity(state_.cluster_id(), job_uid).value_or(JobIdentity());
  }
  const std::string& directory = as_submitted.job().spec().checkpoint().directory();
  const auto turn = looks_.AwaitTurn(as_submitted.job().metadata().name(), directory, deadline);
  if (!turn.ok()) return turn.status();
  // Its rows are its own by now.
  as_submitted.mutable_job()->mutable_spec()->mutable_model()->clear_init_from();
  if (absl::Status s = looks_.LookAtPlaces(as_submitted, deadline, Asked::kAccepted); !s.ok())
    return s;
  auto taken = AskForLock(as_submitted.job(), *uid, deadline);
  auto own = taken.ok() ? looks_.LookForOwn(as_submitted, identity, deadline)
                        : absl::StatusOr<FoundCheckpoints>(taken.status());
  auto reply = own.ok() ? EnterAdopted(owner, *uid, *std::move(own), directory, *taken)
                        : absl::StatusOr<SettleQuarantineReply>(own.status());
  locks_->Settle(job_uid);
  TendFiles();
  return reply;
}

absl::StatusOr<SettleQuarantineReply> SchedulerImpl::EnterAdopted(
    const std::string& owner, const JobUid& uid, FoundCheckpoints own, const std::string& directory,
    const CheckpointLocks::View& lock) {
  MutexLock state_lock(&mu_);
  if (absl::Status s = Ready(); !s.ok()) return s;
  ClusterState::AdoptionFiles files = {.own = std::move(own.complete),
                                       .damaged = std::move(own.damaged),
                                       .other_format = std::move(own.other_format),
                                       .data = std::move(own.data),
                                       .held_up = lock.why,
                                       .first_cut = lock.first_cut,
                                       .owner = owner};
  if (!directory.empty()) {
    files.looked_lock = LookedUnder(uid, lock);
    if (files.looked_lock == 0 && lock.why.empty()) files.held_up = NotHeld(directory);
  }
  auto reply = state_.Adopt(uid.text(), std::move(files), timer_->Now());
  if (absl::Status s = Save(); !s.ok()) return s;
  return reply;
}

}  // namespace strata::scheduler

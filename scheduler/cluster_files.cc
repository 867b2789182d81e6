// ClusterState: what jobs' files and the locks of their checkpoint directories came to.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "scheduler/cluster_state.h"

namespace strata::scheduler {

absl::StatusOr<uint64_t> ClusterState::WantCheckpoint(uint64_t job, absl::Time now) {
  auto it = jobs_.find(job);
  if (it == jobs_.end()) return absl::NotFoundError(absl::StrCat("no job ", job));
  const uint64_t ticket = next_ticket_++;
  if (absl::Status s = it->second->WantCheckpoint(ticket); !s.ok()) return s;
  AdvanceJobs(now);
  return ticket;
}

void ClusterState::ForgetTicket(uint64_t job, uint64_t ticket) {
  if (const auto it = jobs_.find(job); it != jobs_.end()) it->second->ForgetTicket(ticket);
}

void ClusterState::ManifestWritten(uint64_t job, uint64_t cut, const absl::Status& status,
                                   absl::Time now) {
  auto it = jobs_.find(job);
  if (it == jobs_.end()) return;
  it->second->OnManifestWritten(cut, status, now);
  AdvanceJobs(now);
}

void ClusterState::RunEnded(uint64_t job, const absl::Status& status, absl::Time now) {
  const auto it = jobs_.find(job);
  if (it == jobs_.end()) return;
  it->second->OnRunEnded(status, now);
  AdvanceJobs(now);
}

void ClusterState::Removed(uint64_t job, uint64_t number, const absl::Status& status,
                           absl::Time now) {
  auto it = jobs_.find(job);
  if (it == jobs_.end()) return;
  it->second->OnRemoved(number, status, now);
  AdvanceJobs(now);
}

void ClusterState::LeftoversRemoved(uint64_t job, uint64_t number, const absl::Status& status,
                                    absl::Time now) {
  const auto it = jobs_.find(job);
  if (it == jobs_.end()) return;
  it->second->OnLeftoversRemoved(number, status, now);
  AdvanceJobs(now);
}

void ClusterState::OnLock(const LockNews& news, absl::Time now) {
  const auto it = jobs_.find(news.job);
  if (it == jobs_.end()) return;
  JobMachine& job = *it->second;
  switch (news.kind) {
    case LockNews::Kind::kHeld:
      job.LockHeld();
      job.CountCutsFrom(news.first_cut);
      break;
    case LockNews::Kind::kWaits:
      job.AwaitLock(news.text);
      break;
    case LockNews::Kind::kRefused:
    case LockNews::Kind::kLost:
      job.LockGone(news.text, now);
      break;
    case LockNews::Kind::kStalls:
      job.LockStalls(news.text, now);
  }
  AdvanceJobs(now);
}

std::optional<ClusterState::DirectoryLook> ClusterState::LooksAgain(uint64_t job,
                                                                    uint64_t lock) const {
  const auto it = jobs_.find(job);
  if (it == jobs_.end() || !it->second->LooksAgain(lock)) return std::nullopt;
  const JobSpecRecord& spec = it->second->spec();
  DirectoryLook look{.looks = it->second->LooksFor()};
  look.identity = ParseJobIdentity(cluster_id(), spec.job_uid()).value_or(JobIdentity());
  *look.request.mutable_job() = spec.spec();
  // It was looked at with the submission, and servers wait for it.
  look.request.mutable_job()->mutable_spec()->mutable_model()->clear_init_from();
  look.request.set_resume(spec.resume());
  look.request.set_overwrite(spec.overwrite());
  look.replaced.assign(spec.replaced().begin(), spec.replaced().end());
  return look;
}

void ClusterState::FoundAgain(uint64_t job, absl::StatusOr<FoundInDirectory> found,
                              absl::Time now) {
  const auto it = jobs_.find(job);
  if (it == jobs_.end() || it->second->over()) return;
  if (!found.ok()) {
    it->second->DoesNotFit(found.status().message(), now);
  } else {
    it->second->FoundAgain(*std::move(found), now);
    stored_.erase(absl::StrFormat("job/%020d/spec", job));  // it is to be stored again
  }
  AdvanceJobs(now);
}

void ClusterState::AwaitLocks() {
  for (const auto& [id, job] : jobs_) {
    const std::string& directory = job->spec().spec().spec().checkpoint().directory();
    if (directory.empty() || job->over()) continue;
    job->AwaitLock(absl::StrCat("spec.checkpoint.directory ", directory, " is not locked yet"));
  }
}

}  // namespace strata::scheduler

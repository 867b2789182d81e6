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

void ClusterState::CheckpointRemoved(uint64_t job, const std::string& folder,
                                     const absl::Status& status, absl::Time now) {
  auto it = jobs_.find(job);
  if (it == jobs_.end()) return;
  it->second->OnCheckpointRemoved(folder, status, now);
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

void ClusterState::FoundAgain(uint64_t job, absl::StatusOr<std::vector<CheckpointRecord>> complete,
                              const std::vector<std::string>& replaced,
                              std::optional<Schema> resumed, absl::Time now) {
  const auto it = jobs_.find(job);
  if (it == jobs_.end() || it->second->over()) return;
  if (!complete.ok()) {
    it->second->LockGone(complete.status().message(), now);
    return AdvanceJobs(now);
  }
  it->second->FoundAgain(*std::move(complete), replaced, std::move(resumed));
  stored_.erase(absl::StrFormat("job/%020d/spec", job));  // it is to be stored again
}

void ClusterState::AwaitLocks() {
  for (const auto& [id, job] : jobs_) {
    const std::string& directory = job->spec().spec().spec().checkpoint().directory();
    if (directory.empty() || job->over()) continue;
    job->AwaitLock(absl::StrCat("spec.checkpoint.directory ", directory, " is not locked yet"));
  }
}

}  // namespace strata::scheduler

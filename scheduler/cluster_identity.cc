// ClusterState: whose nodes and copies of jobs these are, and how it goes on from an older copy of
// its own records.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "proto/core/mutation.h"
#include "proto/core/position.h"
#include "proto/core/uid.h"
#include "scheduler/cluster_state.h"

namespace strata::scheduler {
namespace {

constexpr absl::string_view kPurgePrefix = "purge/";
constexpr absl::string_view kStartPrefix = "start/";

}  // namespace

absl::Status ClusterState::CheckCluster(const NodeReport& report) const {
  if (report.cluster_id().empty()) return absl::OkStatus();
  if (report.cluster_id() != cluster_id()) {
    return absl::PermissionDeniedError(
        absl::StrCat(report.name(), " belongs to cluster ", report.cluster_id(),
                     ", but this scheduler is of cluster ", cluster_id(), "; it is not let in"));
  }
  if (hearing_) return absl::OkStatus();
  if (absl::Status s = CheckStart(report); !s.ok()) return s;
  const std::string more = WhatIsLater(report);
  if (more.empty()) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat(report.name(), " knows ", more, " of cluster ", cluster_id(),
                   ", but this scheduler does not (term ", term(),
                   "): its folder comes from an older copy; start it once with --restored"));
}

// Two schedulers whose folders are copies of one count the same terms. Which of them a node
// follows, the id of the start tells, also when this one has started again since.
absl::Status ClusterState::CheckStart(const NodeReport& report) const {
  const std::string own = StartOf(report.term());
  if (report.start_id().empty() || own.empty() || report.start_id() == own ||
      STRATA_MUTATION("identity.start_not_checked")) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(absl::StrCat(
      report.name(), " has heard of term ", report.term(), " of cluster ", cluster_id(),
      " from start ", report.start_id(), " of its scheduler, but here that term was start ", own,
      ": one of the two has its folder from an older copy; if it is this one, start it once with "
      "--restored, else end it"));
}

std::string ClusterState::StartOf(uint64_t term) const {
  const auto start = starts_.find(term);
  return start == starts_.end() ? "" : start->second;
}

// Others than those of every other start of a scheduler, whatever its records are: from what that
// one drew, by counting.
std::string ClusterState::DrawLogId() {
  const auto start = StartId::Parse(StartOf(term()));
  const auto cluster = ClusterId::Parse(cluster_id());
  const uint64_t high = start ? start->high : cluster ? cluster->high : 0;
  const uint64_t low = start ? start->low : cluster ? cluster->low : 0;
  ++log_ids_;
  return UidText(Mix64(high ^ Mix64(log_ids_)), Mix64(low + log_ids_));
}

uint64_t ClusterState::TermOf(absl::string_view key) {
  uint64_t term = 0;
  const bool is_it = absl::ConsumePrefix(&key, kStartPrefix) && absl::SimpleAtoi(key, &term);
  return is_it ? term : 0;
}

void ClusterState::PutStarts(std::vector<MetadataChange>& out) {
  if (starts_.empty()) return;
  // Those before it are stored.
  Put(absl::StrFormat("%s%020d", kStartPrefix, starts_.rbegin()->first), starts_.rbegin()->second,
      out);
}

// What a scheduler of this cluster gave out that these records know nothing of; "": nothing.
std::string ClusterState::WhatIsLater(const NodeReport& report) const {
  if (report.term() > term()) return absl::StrCat("term ", report.term());
  if (report.session() >= numbers_.next_session()) {
    return absl::StrCat("session ", report.session());
  }
  std::string later;
  for (const ServerJobReport& j : report.server_jobs()) {
    const bool own = j.cluster_id().empty() || j.cluster_id() == cluster_id();
    if (own && j.job() >= numbers_.next_job()) later = absl::StrCat("job ", j.job());
  }
  const auto look = [this, &later](const auto& j) {
    const JobMachine* const job = Machine(j.job(), j.job_uid());
    if (job == nullptr || j.generation() <= job->state().generation()) return;
    later = absl::StrCat("generation ", j.generation(), " of job ", j.job_uid());
  };
  for (const ServerJobReport& j : report.server_jobs()) {
    look(j);
    const JobMachine* const job = Machine(j.job(), j.job_uid());
    if (job == nullptr || j.generation() != job->state().generation()) continue;
    if (j.copy().chain_epoch() <= job->state().map_epoch()) continue;
    later = absl::StrCat("epoch ", j.copy().chain_epoch(), " of a chain of job ", j.job_uid());
  }
  for (const WorkerJobReport& j : report.worker_jobs()) look(j);
  return later;
}

absl::Status ClusterState::OnlyHears() {
  return absl::UnavailableError(
      "the scheduler's folder comes from an older copy (--restored): for a lease it only hears how "
      "far its nodes are");
}

void ClusterState::Hear(absl::Time now) {
  members_.ForgetSilences(now);
  hearing_.emplace(now + std::max(members_.lease(), Membership::kReturnTime));
}

std::vector<ClusterState::JobFolder> ClusterState::CheckpointFolders() const {
  std::vector<JobFolder> folders;
  for (const auto& [id, job] : jobs_) {
    const std::string& folder = job->spec().spec().spec().checkpoint().directory();
    const auto identity = ParseJobIdentity(cluster_id(), job->spec().job_uid());
    if (job->over() || folder.empty() || !identity) continue;
    const auto& replaced = job->spec().replaced();
    folders.push_back({id, *identity, folder, {replaced.begin(), replaced.end()}});
  }
  return folders;
}

void ClusterState::GoOn(const FoundByJob& found, absl::Time now, StartId drawn) {
  if (!hearing_) return;
  const Hearing heard = *std::exchange(hearing_, std::nullopt);
  numbers_.set_term(heard.TermAfter(term()) - 1);  // Started takes the next
  numbers_.set_next_session(heard.SessionFrom(numbers_.next_session()));
  numbers_.set_next_job(heard.JobFrom(numbers_.next_job()));
  purging_.clear();
  starts_.clear();  // nodes may have heard of those terms from others, and this one is above them
  events_.Add(now, "SchedulerRestored", "", 0,
              "the scheduler's folder comes from an older copy; jobs that it says go on begin "
              "again from their newest checkpoints, and what it knows nothing of is kept");
  for (const auto& [id, job] : jobs_) {
    const auto its = found.find(id);
    const std::string& uid = job->spec().job_uid();
    job->GoOnFromCopy(heard.GenerationAfter(uid, job->state().generation()),
                      heard.MapEpochFrom(uid, job->state().map_epoch()),
                      its == found.end() ? FoundInDirectory() : its->second, now);
  }
  Started(now, drawn);
}

absl::StatusOr<SettleQuarantineReply> ClusterState::SettleQuarantine(
    const SettleQuarantineRequest& request, absl::Time now) {
  if (!JobUid::Parse(request.job_uid())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "job_uid is \"", request.job_uid(), "\"; it must be 32 hexadecimal digits, not all 0"));
  }
  if (request.action() != SettleQuarantineRequest::PURGE) {
    return absl::InvalidArgumentError("action must be ADOPT or PURGE");
  }
  SettleQuarantineReply reply;
  std::string name;
  for (const KeptCopy& copy : CopiesOf(request.job_uid())) {
    if (copy.node != request.node()) continue;
    reply.add_nodes(copy.node);
    name = copy.kept.name();
  }
  if (reply.nodes().empty()) {
    return absl::NotFoundError(absl::StrCat("server ", request.node(),
                                            " is not heard of, or keeps no copy of job ",
                                            request.job_uid(), " in quarantine"));
  }
  if (const JobMachine* const job = Living(request.job_uid()); job != nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("job ", name, " (", request.job_uid(),
                                                      ") was adopted as job ", job->id(),
                                                      "; cancel it first"));
  }
  purging_.insert({request.node(), request.job_uid()});
  events_.Add(now, "QuarantinePurged", request.node(), 0,
              absl::StrCat("a user has server ", request.node(), " remove its copy of job ", name,
                           " (", request.job_uid(), "), which no scheduler knows"));
  return reply;
}

std::string ClusterState::PurgeKey(const Purge& purge) {
  return absl::StrCat(kPurgePrefix, purge.second, "/", purge.first);
}

std::optional<ClusterState::Purge> ClusterState::PurgeOf(absl::string_view key) {
  if (!absl::ConsumePrefix(&key, kPurgePrefix)) return std::nullopt;
  const size_t slash = key.find('/');
  if (slash == absl::string_view::npos) return std::nullopt;
  return Purge(key.substr(slash + 1), key.substr(0, slash));
}

// What a server speaks of no more is gone.
void ClusterState::EndPurges(const NodeReport& report) {
  for (auto it = purging_.begin(); it != purging_.end();) {
    const auto& [node, uid] = *it;
    const auto is_it = [&uid = uid](const ServerJobReport& j) { return j.job_uid() == uid; };
    const bool kept = node != report.name() ||
                      std::any_of(report.server_jobs().begin(), report.server_jobs().end(), is_it);
    it = kept ? std::next(it) : purging_.erase(it);
  }
}

uint64_t ClusterState::quarantined() const {
  uint64_t count = 0;
  for (const auto& [node, told] : told_) count += static_cast<uint64_t>(told.quarantined.size());
  return count;
}

}  // namespace strata::scheduler

#include "scheduler/node_credentials.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/core/mutation.h"
#include "proto/core/uid.h"

namespace strata::scheduler {

absl::Status NodeCredentials::Sign(const std::string& node, const NodeDirective& directive,
                                   absl::Time wall, const WorkerJobDirective& job,
                                   Signed& out) const {
  const auto identity = ParseJobIdentity(directive.cluster_id(), job.job_uid());
  if (!identity) {
    return absl::InvalidArgumentError(
        absl::StrCat("job ", job.job(), " has no UID to sign a session credential for"));
  }
  SessionCredential session;
  session.cluster = identity->cluster;
  session.job = identity->job;
  session.generation = Generation(job.generation());
  session.session = SessionId(directive.session());
  session.worker = node;
  session.lanes = {job.lanes().begin(), job.lanes().end()};
  // Whole seconds; what is left of one is too little to matter.
  session.expires = absl::FromUnixSeconds(absl::ToUnixSeconds(wall + kLife));
  out = {job.generation(), directive.session(), session.lanes, wall, ""};
  std::sort(session.lanes.begin(), session.lanes.end());
  auto text = signer_.Sign(session);
  if (!text.ok()) return text.status();
  out.credential = *std::move(text);
  return absl::OkStatus();
}

absl::Status NodeCredentials::Fill(const std::string& node, const std::string& revoked,
                                   absl::Time wall, NodeDirective& directive) {
  Told now;
  now.revoked = revoked;
  directive.set_revoked(revoked);
  directive.add_session_keys(signer_.Public());
  Told& before = told_[node];
  for (WorkerJobDirective& job : *directive.mutable_worker_jobs()) {
    if (job.close() || job.make_index()) continue;
    Signed& last = now.jobs[job.job_uid()];
    if (const auto known = before.jobs.find(job.job_uid()); known != before.jobs.end()) {
      last = std::move(known->second);
    }
    const bool same =
        last.generation == job.generation() && last.session == directive.session() &&
        std::equal(last.lanes.begin(), last.lanes.end(), job.lanes().begin(), job.lanes().end());
    if (!same || last.credential.empty() || IsOld(last, wall)) {
      if (absl::Status s = Sign(node, directive, wall, job, last); !s.ok()) return s;
    }
    job.set_session_credential(last.credential);
  }
  before = std::move(now);
  return absl::OkStatus();
}

bool NodeCredentials::Due(const std::string& node, const std::string& revoked,
                          absl::Time wall) const {
  const auto told = told_.find(node);
  if (told == told_.end()) return true;
  if (told->second.revoked != revoked) return true;
  return std::any_of(told->second.jobs.begin(), told->second.jobs.end(),
                     [&](const auto& job) { return IsOld(job.second, wall); }) &&
         !STRATA_MUTATION("sessions.never_renewed");
}

}  // namespace strata::scheduler

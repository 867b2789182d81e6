#include "server/session_gate.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/core/mutation.h"
#include "proto/runtime/credentials/certificate.h"
#include "proto/runtime/credentials/identity.h"

namespace strata::server {
namespace {

std::string Who(const Caller& caller) {
  return absl::StrCat(RoleName(caller.role), "/", caller.name);
}

absl::Status Foreign(const Caller& caller, Rpc rpc, absl::string_view what) {
  return absl::PermissionDeniedError(
      absl::StrCat(RuleOf(rpc).method, " of ", Who(caller), ": its session credential is of ", what,
                   "; ask the scheduler for the one of this job (WorkerJobDirective)"));
}

}  // namespace

void SessionGate::Hear() {
  const absl::Time wall = clock_->Wall(clock_->Now());
  MutexLock lock(&mu_);
  heard_ = wall;
}

void SessionGate::SetKeys(std::vector<std::string> keys) {
  Hear();
  MutexLock lock(&mu_);
  if (keys_ == keys) return;
  keys_ = std::move(keys);
  verified_.clear();
  lanes_.clear();
}

absl::StatusOr<SessionGate::Verified> SessionGate::Verify(const std::string& credential) {
  std::vector<std::string> keys;
  {
    MutexLock lock(&mu_);
    if (const auto known = verified_.find(credential); known != verified_.end()) {
      return known->second;
    }
    keys = keys_;
  }
  if (keys.empty()) {
    return absl::UnavailableError(
        "the scheduler has not told this server yet how to check session credentials");
  }
  auto session = VerifySession(credential, keys);
  if (!session.ok()) return session.status();
  auto verified = std::make_shared<const SessionCredential>(*std::move(session));
  MutexLock lock(&mu_);
  if (keys_ != keys) return absl::UnavailableError("the scheduler's key has just changed");
  if (verified_.size() >= kMostVerified) {
    verified_.clear();
    lanes_.clear();
  }
  verified_[credential] = verified;
  lanes_[{verified->cluster, verified->job, verified->generation, verified->session}].insert(
      verified->lanes.begin(), verified->lanes.end());
  return verified;
}

absl::Status SessionGate::CheckLanes(const SessionCredential& session,
                                     std::span<const LaneNode> lanes) {
  MutexLock lock(&mu_);
  const std::set<uint32_t>& own =
      lanes_[{session.cluster, session.job, session.generation, session.session}];
  for (const LaneNode& node : lanes) {
    auto at = own.lower_bound(node.first);
    for (uint32_t lane = node.first; lane < node.end; ++lane, ++at) {
      if (at == own.end() || *at != lane) {
        return absl::FailedPreconditionError(
            absl::StrCat("lane ", lane, " is not one of the session's by its credential (",
                         own.size(), " lanes); ask the scheduler which it has"));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status SessionGate::CheckTime(const Caller& caller, Rpc rpc,
                                    const SessionCredential& session) {
  MutexLock lock(&mu_);
  const absl::Time heard =
      STRATA_MUTATION("sessions.silence_ends_them") ? clock_->Wall(clock_->Now()) : heard_;
  if (CheckSessionTime(session, heard - kClocksDiffer).ok()) return absl::OkStatus();
  return absl::UnauthenticatedError(absl::StrCat(
      RuleOf(rpc).method, " of ", Who(caller), ": its session credential expired at ",
      TimeText(session.expires), ", and this server has heard the scheduler at ", TimeText(heard),
      ", ", absl::FormatDuration(kClocksDiffer),
      " or more later; send the newest of the job's (WorkerJobDirective.session_credential)"));
}

absl::Status SessionGate::Check(const Caller& caller, const Asked& asked) {
  if (!caller.asked || STRATA_MUTATION("sessions.not_asked")) return absl::OkStatus();
  const SessionProof proof = RuleOf(asked.rpc).proof;
  const bool worker = caller.role == Role::kWorker;
  if (proof == SessionProof::kNone) return absl::OkStatus();
  if (proof == SessionProof::kOfLaneHosts && !worker) {
    if (!asked.as_host) return absl::OkStatus();
    return absl::PermissionDeniedError(
        absl::StrCat(RuleOf(asked.rpc).method, " of ", Who(caller),
                     " asks for a ticket, which hosts of lanes alone are given; leave it out"));
  }
  const std::string credential = caller.jobs == nullptr ? "" : caller.jobs->Get();
  if (credential.empty()) {
    return absl::UnauthenticatedError(
        absl::StrCat(RuleOf(asked.rpc).method, " of ", Who(caller),
                     " came without a session credential; send the newest of the job's "
                     "(WorkerJobDirective.session_credential) as metadata strata-session-bin"));
  }
  const auto verified = Verify(credential);
  if (!verified.ok()) return verified.status();
  const SessionCredential& session = **verified;
  if (absl::Status s = CheckTime(caller, asked.rpc, session); !s.ok()) return s;
  if (session.cluster != asked.job->cluster || session.job != asked.job->job) {
    return Foreign(caller, asked.rpc, absl::StrCat("job ", session.job.text()));
  }
  if (session.generation != asked.header->generation) {
    return Foreign(caller, asked.rpc, absl::StrCat("generation ", session.generation.value));
  }
  if (session.session != asked.header->session || session.worker != caller.name) {
    return Foreign(caller, asked.rpc,
                   absl::StrCat("session ", session.session.value, " of worker/", session.worker));
  }
  return CheckLanes(session, asked.lanes);
}

}  // namespace strata::server

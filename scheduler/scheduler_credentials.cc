// Scheduler: who calls, and what nodes are told of that.
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/core/mutation.h"
#include "proto/runtime/credentials/identity.h"
#include "scheduler/scheduler_impl.h"

namespace strata::scheduler {
namespace {

// The private key that signs session credentials: as secret as the scheduler's folder is.
constexpr char kSessionKey[] = "session-key";

}  // namespace

absl::Status SchedulerImpl::OpenCredentials(const std::map<std::string, std::string>& records) {
  if (credentials_ == nullptr && !sign_sessions_) return absl::OkStatus();
  if (credentials_ != nullptr && state_.cluster_id() != credentials_->cluster().text()) {
    return absl::FailedPreconditionError(
        absl::StrCat("this scheduler's folder (--dir) is of cluster ", state_.cluster_id(),
                     ", and its certificate (--certs) of cluster ", credentials_->cluster().text(),
                     "; give it a certificate of the folder's cluster, or a new folder"));
  }
  const auto key = records.find(kSessionKey);
  auto signer =
      key == records.end() ? SessionSigner::New() : SessionSigner::FromPrivate(key->second);
  if (!signer.ok()) {
    return absl::DataLossError(
        absl::StrCat("record ", kSessionKey, ": ", signer.status().message()));
  }
  if (key == records.end()) unsaved_.Add({{kSessionKey, signer->Private()}});
  node_credentials_.emplace(*std::move(signer));
  return absl::OkStatus();
}

absl::StatusOr<SubmitReply> SchedulerImpl::Submit(const SubmitRequest& request,
                                                  absl::Duration timeout) {
  return SubmitAs(Caller::Nobody(), request, timeout);
}

absl::StatusOr<SettleQuarantineReply> SchedulerImpl::SettleQuarantine(
    const SettleQuarantineRequest& request, absl::Duration timeout) {
  return SettleQuarantineAs(Caller::Nobody(), request, timeout);
}

absl::Status SchedulerImpl::CheckOwner(const Caller& caller, const std::set<std::string>& owners,
                                       absl::string_view what, absl::string_view remedy) const {
  if (!caller.asked || owners.count(caller.name) > 0 || owners.count("*") > 0 ||
      admins_.count(caller.name) > 0 || STRATA_MUTATION("owners.anybody")) {
    return absl::OkStatus();
  }
  const std::string who =
      owners.empty()
          ? std::string("its owners are not known; ask")
          : absl::StrCat("its owners are ", absl::StrJoin(owners, ", "), "; ask one of them, or");
  return absl::PermissionDeniedError(
      absl::StrCat(RoleName(caller.role), "/", caller.name, " may not ", what, ": ", who,
                   " an admin of the cluster (strata-scheduler --admins NAME)", remedy));
}

absl::Status SchedulerImpl::CheckOwnersOf(const Caller& caller,
                                          const FoundCheckpoints& found) const {
  for (const FoundCheckpoints::Owned& checkpoint : found.owned) {
    const absl::Status s =
        CheckOwner(caller, checkpoint.owners,
                   absl::StrCat(found.replaced.empty() ? "go on from" : "replace", " checkpoint ",
                                checkpoint.folder),
                   ", or give spec.checkpoint.directory another value");
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status SchedulerImpl::CheckOwnersOf(const Caller& caller,
                                          const SettleQuarantineRequest& request) {
  const bool adopt = request.action() == SettleQuarantineRequest::ADOPT;
  for (const std::set<std::string>& owners : state_.OwnersOfKept(request)) {
    const absl::Status s =
        CheckOwner(caller, owners,
                   adopt ? absl::StrCat("adopt job ", request.job_uid())
                         : absl::StrCat("purge the copy of job ", request.job_uid(),
                                        " that server ", request.node(), " keeps"),
                   "");
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> SchedulerImpl::OwnJob(const Caller& caller, const JobRef& ref) {
  MutexLock lock(&mu_);
  if (absl::Status s = Ready(); !s.ok()) return s;
  auto job = state_.FindJob(ref);
  if (!job.ok()) return job.status();
  const std::set<std::string> owners = state_.OwnersOf(*job);
  if (owners.empty()) return *job;  // submitted where nobody was asked
  const absl::Status s = CheckOwner(caller, owners, absl::StrCat("decide about job ", *job), "");
  if (!s.ok()) return s;
  return *job;
}

}  // namespace strata::scheduler

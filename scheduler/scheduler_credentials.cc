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
  if (credentials_ == nullptr) return absl::OkStatus();
  if (state_.cluster_id() != credentials_->cluster().text()) {
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

absl::StatusOr<uint64_t> SchedulerImpl::OwnJob(const Caller& caller, const JobRef& ref) {
  MutexLock lock(&mu_);
  if (absl::Status s = Ready(); !s.ok()) return s;
  auto job = state_.FindJob(ref);
  if (!job.ok()) return job.status();
  const std::set<std::string> owners = state_.OwnersOf(*job);
  if (!caller.asked || owners.empty() || owners.count(caller.name) > 0 || owners.count("*") > 0 ||
      admins_.count(caller.name) > 0 || STRATA_MUTATION("owners.anybody")) {
    return *job;
  }
  return absl::PermissionDeniedError(
      absl::StrCat(RoleName(caller.role), "/", caller.name, " may not decide about job ", *job,
                   ": its owners are ", absl::StrJoin(owners, ", "),
                   "; ask one of them, or an admin of the cluster (strata-scheduler --admins)"));
}

}  // namespace strata::scheduler

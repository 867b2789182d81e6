#include "tools/cli/cluster/cluster_certs.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/core/uid.h"
#include "proto/runtime/base/id_source.h"
#include "proto/runtime/credentials/authority_files.h"
#include "proto/runtime/credentials/identity_files.h"
#include "proto/runtime/credentials/peer_verifier.h"
#include "proto/runtime/credentials/places.h"
#include "proto/runtime/credentials/revocations.h"
#include "proto/runtime/files/node_cluster.h"

namespace strata {
namespace {

constexpr int kAuthorityDays = 3650;
constexpr absl::Duration kDay = absl::Hours(24);

std::vector<std::string> Processes(const ClusterConfig& config) {
  std::vector<std::string> names = {"scheduler"};
  for (uint32_t i = 0; i < config.servers; ++i) names.push_back(absl::StrCat("server-", i));
  for (uint32_t i = 0; i < config.workers; ++i) names.push_back(absl::StrCat("worker-", i));
  return names;
}

// Earlier starts without TLS gave the folder's cluster an id: its nodes follow no other.
absl::StatusOr<ClusterId> ClusterOfFolder(const ClusterDir& dir, const ClusterConfig& config) {
  for (const std::string& name : Processes(config)) {
    const auto node = NodeCluster::Open(dir.ProcessPath(name));
    if (!node.ok()) return node.status();
    if (const auto id = ClusterId::Parse(node->id())) return *id;
  }
  return DrawId<ClusterId>(*IdSource::System());
}

absl::StatusOr<AuthorityCertificate> MakeAuthority(const ClusterDir& dir,
                                                   const ClusterConfig& config, absl::Time now) {
  auto there = ReadAuthority(dir.CertsPath());
  if (!absl::IsNotFound(there.status())) return there;
  const auto cluster = ClusterOfFolder(dir, config);
  if (!cluster.ok()) return cluster.status();
  return InitAuthority(dir.CertsPath(), *cluster, kAuthorityDays, now);
}

absl::Status MakeIdentity(const ClusterDir& dir, const AuthorityCertificate& authority,
                          const IssueOrder& order, absl::Time now) {
  const std::string current = CurrentFolder(dir.CertsPath(), order.role, order.name);
  const auto there = LoadCredentials(current);
  // One that was revoked is no fault of the files: its owner renews it, or leaves it.
  const bool good = there.ok() && there->authorities == authority.pem &&
                    VerifyPeer(there->certificate.pem,
                               {.authorities = authority.pem,
                                .cluster = authority.cluster,
                                .roles = {order.role},
                                .name = order.name},
                               now, Revocations())
                        .ok();
  if (good && there->certificate.facts.valid.until - now > kRenewAtDays * kDay) {
    return absl::OkStatus();
  }
  if (absl::IsNotFound(ReadIdentityCertificate(current).status())) {
    const auto issued = IssueIdentity(dir.CertsPath(), order, now);
    // Its link is there, and what it led to is not.
    if (!absl::IsAlreadyExists(issued.status())) return issued.status();
  }
  return RenewIdentity(dir.CertsPath(), order, now).status();
}

}  // namespace

std::string ClusterUser() {
  const passwd* user = getpwuid(geteuid());
  const std::string name = user == nullptr ? "" : user->pw_name;
  return CheckIdentityName(name).ok() ? name : "operator";
}

Role RoleOfProcess(const std::string& process) {
  if (absl::StartsWith(process, "server-")) return Role::kServer;
  return absl::StartsWith(process, "worker-") ? Role::kWorker : Role::kScheduler;
}

std::string ProcessCertsFolder(const ClusterDir& dir, const std::string& process) {
  return CurrentFolder(dir.CertsPath(), RoleOfProcess(process), process);
}

absl::StatusOr<std::string> MakeClusterCerts(const ClusterDir& dir, const ClusterConfig& config,
                                             absl::Time now) {
  const auto authority = MakeAuthority(dir, config, now);
  if (!authority.ok()) return authority.status();
  // In its last weeks the CA signs for what it has left itself; then it says what to do.
  const int64_t left = (authority->facts.valid.until - now) / kDay;
  const int days = static_cast<int>(std::clamp<int64_t>(left, 1, kClusterCertDays));
  for (const std::string& name : Processes(config)) {
    const absl::Status made = MakeIdentity(dir, *authority, {RoleOfProcess(name), name, days}, now);
    if (!made.ok()) return made;
  }
  const std::string user = ClusterUser();
  const absl::Status made = MakeIdentity(dir, *authority, {Role::kOperator, user, days}, now);
  if (!made.ok()) return made;
  return CurrentFolder(dir.CertsPath(), Role::kOperator, user);
}

}  // namespace strata

#include "proto/runtime/transport/process_tls.h"

#include <glog/logging.h>
#include <grpc/grpc_security_constants.h>
#include <grpcpp/client_context.h>
#include <grpcpp/security/auth_context.h>
#include <grpcpp/server_context.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/core/mutation.h"
#include "proto/runtime/credentials/certificate.h"
#include "proto/runtime/credentials/cipher_suites.h"
#include "proto/runtime/credentials/folder_credentials.h"
#include "proto/runtime/transport/refusal_log.h"
#include "proto/runtime/transport/tls_credentials.h"

namespace strata {
namespace {

// Certificates of processes and people that call at once, with room for renewed ones.
constexpr size_t kMostSeen = 4096;
// The authority's certificate expires as well; nothing else makes one that was good bad.
constexpr absl::Duration kSeenFor = absl::Minutes(1);

absl::Status Unfit(const std::string& folder, absl::string_view why) {
  return absl::UnauthenticatedError(absl::StrCat("--certs ", folder, ": ", why));
}

absl::Status CheckSelf(const ProcessTlsOptions& o, const Credentials& mine) {
  const IdentityCertificate& certificate = mine.certificate;
  const bool role_differs = o.role.has_value() && certificate.identity.role != *o.role;
  const bool name_differs = o.name.has_value() && certificate.identity.name != *o.name;
  if (!role_differs && !name_differs) return absl::OkStatus();
  const std::string wanted = absl::StrCat(o.role.has_value() ? RoleName(*o.role) : "any role",
                                          o.name.has_value() ? absl::StrCat("/", *o.name) : "");
  const std::string by_name =
      role_differs ? std::string()
                   : absl::StrCat("start it with --name ", certificate.identity.name, ", or ");
  return Unfit(
      o.folder,
      absl::StrCat(certificate.file, ": certificate of ", Describe(certificate.facts),
                   ": it is for ", Describe(certificate.identity), ", and this process is ", wanted,
                   "; ", by_name, "issue one for it: strata certs issue ",
                   RoleName(o.role.value_or(certificate.identity.role)), " ",
                   o.name.value_or(certificate.identity.name)));
}

void LogChange(const absl::Status& now) {
  LOG_IF(WARNING, !now.ok()) << "certificate_unfit error=\"" << now
                             << "\" next=one_before_is_shown";
  LOG_IF(INFO, now.ok()) << "certificate_fit_again";
}

}  // namespace

void AllowTls13Alone() {
  // Ciphers of TLS 1.2 for RSA keys, which no certificate of ours has: no handshake of TLS 1.2
  // finds one. Those of TLS 1.3 are another list.
  ::setenv("GRPC_SSL_CIPHER_SUITES", "ECDHE-RSA-AES256-GCM-SHA384", /*overwrite=*/1);
  if (const absl::Status s = PreferAes128(); !s.ok()) {
    std::fprintf(stderr, "TLS: %s\n", std::string(s.message()).c_str());
    std::abort();
  }
}

absl::StatusOr<std::shared_ptr<ProcessTls>> ProcessTls::Open(const ProcessTlsOptions& options) {
  if (options.folder.empty()) return std::shared_ptr<ProcessTls>();
  if (options.insecure) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--certs ", options.folder,
        " and --insecure exclude each other: with certificates everybody is asked who he is; leave "
        "one of them out"));
  }
  auto source = OpenCredentials({.folder = options.folder,
                                 .clock = options.clock,
                                 .look_again = absl::Seconds(options.refresh_seconds)});
  if (!source.ok()) return Unfit(options.folder, source.status().message());
  if (absl::Status s = CheckSelf(options, *(*source)->Current()); !s.ok()) return s;
  return std::shared_ptr<ProcessTls>(new ProcessTls(*std::move(source), options));
}

ProcessTls::ProcessTls(std::shared_ptr<CredentialSource> source, const ProcessTlsOptions& options)
    : source_(std::move(source)),
      watch_({.source = source_,
              .every = absl::Seconds(options.refresh_seconds),
              .changed = [changed = options.changed](const absl::Status& now) {
                LogChange(now);
                if (changed) changed(now);
              }}) {}

std::string ProcessTls::HostOf(Role role) const { return RoleHost(source_->cluster(), role); }

std::shared_ptr<grpc::ChannelCredentials> ProcessTls::ChannelTo(Role role,
                                                                std::optional<std::string> name,
                                                                std::shared_ptr<MetPeer> met) {
  const auto mine = source_->Current();
  if (met != nullptr) met->Show(mine);
  return TlsChannelCredentials(*mine, [source = source_, role, name = std::move(name),
                                       met = std::move(met)](absl::string_view certificate) {
    auto caller = source->Verify(certificate, {role}, name);
    if (caller.ok() && met != nullptr) met->Meet(std::string(certificate));
    return caller;
  });
}

absl::Status ProcessTls::CheckPeerNow(const std::string& certificate) {
  if (certificate.empty()) return absl::OkStatus();
  const absl::Status s = Who(certificate).status();
  if (s.ok() || STRATA_MUTATION("peers.met_for_good")) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("who is called counts no more: ", s.message()));
}

absl::Status ProcessTls::CheckMet(const MetPeer& met) {
  const auto shown = met.shown();
  if (shown != nullptr && shown != source_->Current() && !STRATA_MUTATION("peers.shown_for_good")) {
    return absl::UnavailableError("this process shows another certificate by now");
  }
  return CheckPeerNow(met.certificate());
}

absl::Status ProcessTls::CheckAnswered(const grpc::ClientContext& call) {
  const auto shown = call.auth_context()->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
  return CheckPeerNow(shown.empty() ? "" : std::string(shown[0].data(), shown[0].size()));
}

std::shared_ptr<grpc::ServerCredentials> ProcessTls::ForPort() {
  // Who calls learns why he may not from an answer to his call: of a connection that is refused he
  // sees the end alone. So nobody is turned away here but by TLS, which wants a certificate of our
  // CA that is good by the machine's clock. What was read last: gRPC's threads may not wait.
  return TlsServerCredentials([source = source_] { return source->Last(); });
}

absl::StatusOr<Caller> ProcessTls::Who(const std::string& certificate) {
  const absl::Time now = source_->WallNow();
  auto mine = source_->Current();
  auto revoked = source_->Revoked();
  {
    MutexLock lock(&mu_);
    const auto it = seen_.find(certificate);
    const bool fresh = it != seen_.end() && it->second.at <= now && now < it->second.until &&
                       it->second.mine == mine && it->second.revoked == revoked;
    if (fresh || (it != seen_.end() && STRATA_MUTATION("peers.seen_for_good"))) {
      return it->second.caller;
    }
  }
  auto caller = source_->Verify(certificate, {kRoles.begin(), kRoles.end()});
  if (!caller.ok()) return caller.status();
  const auto facts = ReadCertificate(certificate);
  if (!facts.ok()) return facts.status();
  MutexLock lock(&mu_);
  if (seen_.size() >= kMostSeen) seen_.clear();
  seen_[certificate] = {*caller, now, std::min(now + kSeenFor, facts->valid.until), std::move(mine),
                        std::move(revoked)};
  return caller;
}

absl::StatusOr<Caller> ProcessTls::Admit(const grpc::ServerContextBase& context, Rpc rpc) {
  auto caller = AdmitSilently(context, rpc);
  if (!caller.ok()) NoteRefusedCall(context.peer(), RuleOf(rpc).method, caller.status());
  return caller;
}

absl::StatusOr<Caller> ProcessTls::AdmitSilently(const grpc::ServerContextBase& context, Rpc rpc) {
  const auto shown = context.auth_context()->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
  if (shown.size() != 1) return source_->Verify("", {});
  const std::string certificate(shown[0].data(), shown[0].size());
  auto caller = Who(certificate);
  if (!caller.ok()) return caller.status();
  if (!CheckRole(*caller, rpc).ok()) {
    // Once more, for a text that names subject and expiry.
    return source_->Verify(certificate, RuleOf(rpc).AllowedRoles());
  }
  const auto& sent = context.client_metadata();
  if (const auto session = sent.find(kSessionMetadata); session != sent.end()) {
    caller->jobs =
        std::make_shared<HeldSession>(std::string(session->second.data(), session->second.size()));
  }
  return caller;
}

Caller SelfOf(const std::shared_ptr<ProcessTls>& tls, std::shared_ptr<const HeldSession> jobs) {
  if (tls == nullptr) return Caller::Nobody();
  return {.name = tls->self().name, .role = tls->self().role, .jobs = std::move(jobs)};
}

BindScope ScopeOf(const std::shared_ptr<ProcessTls>& tls, bool insecure) {
  if (tls != nullptr) return BindScope::kAnywhereTls;
  return insecure ? BindScope::kAnywhereInsecure : BindScope::kLoopbackOnly;
}

absl::StatusOr<Caller> AdmitCall(const std::shared_ptr<ProcessTls>& tls,
                                 const grpc::ServerContextBase& context, Rpc rpc) {
  if (tls == nullptr) return Caller::Nobody();
  return tls->Admit(context, rpc);
}

}  // namespace strata

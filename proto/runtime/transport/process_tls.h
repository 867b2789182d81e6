// TLS of one process: what its ports and its connections show, whom they let in, and who makes a
// call. Everything that listens or connects in a process shares one; null stands for a process
// without certificates, which asks nobody.
// Tested by tests/server/rpc_walk_test.cc
#ifndef STRATA_PROTO_RUNTIME_TRANSPORT_PROCESS_TLS_H_
#define STRATA_PROTO_RUNTIME_TRANSPORT_PROCESS_TLS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/core/mutex.h"
#include "proto/runtime/base/clock.h"
#include "proto/runtime/credentials/caller.h"
#include "proto/runtime/credentials/certificate_watch.h"
#include "proto/runtime/credentials/credential_source.h"
#include "proto/runtime/credentials/identity.h"
#include "proto/runtime/credentials/identity_files.h"
#include "proto/runtime/credentials/rpc_policy.h"
#include "proto/runtime/transport/bind_policy.h"

namespace grpc {
class ChannelCredentials;
class ClientContext;
class ServerContextBase;
class ServerCredentials;
}  // namespace grpc

namespace strata {

// Metadata of a call: the session credential of its caller.
inline constexpr char kSessionMetadata[] = "strata-session-bin";

struct ProcessTlsOptions {
  // --certs: a folder with ca.crt, tls.crt and tls.key, as `strata certs` makes them:
  // CERTS/ROLE/NAME/current. Empty: there is none.
  std::string folder;
  // --insecure: what listens may be reached from elsewhere, and nobody is asked.
  bool insecure = false;
  // Whose certificate it must be; nothing: anybody's.
  std::optional<Role> role;
  std::optional<std::string> name;
  // Decides what has expired; outlives what is made of it.
  Clock* clock = Clock::Real();
  // How often the files are looked at.
  uint32_t refresh_seconds = 10;
  // Told, beside the log, when the source's problem() has become another one, OK included; from a
  // thread of the ProcessTls. May be empty.
  std::function<void(const absl::Status& now)> changed = nullptr;
};

// Has this process refuse TLS 1.2, which gRPC 1.51 takes as well and has no option for. A main
// program calls it first: before any other thread runs (it sets an environment variable, which gRPC
// reads once) and before any credentials are made. Of the ciphers of TLS 1.3 the process prefers
// AES-128 from then on (PreferAes128).
void AllowTls13Alone();

// What a channel shows, and who was at its other end by its last handshake. Thread-safe.
class MetPeer {
 public:
  void Show(std::shared_ptr<const Credentials> mine) {
    MutexLock lock(&mu_);
    shown_ = std::move(mine);
  }
  // Null: nothing.
  std::shared_ptr<const Credentials> shown() const {
    MutexLock lock(&mu_);
    return shown_;
  }
  void Meet(std::string certificate) {
    MutexLock lock(&mu_);
    certificate_ = std::move(certificate);
  }
  // PEM; empty: there was none yet.
  std::string certificate() const {
    MutexLock lock(&mu_);
    return certificate_;
  }

 private:
  mutable Mutex mu_;
  std::shared_ptr<const Credentials> shown_ ABSL_GUARDED_BY(mu_);
  std::string certificate_ ABSL_GUARDED_BY(mu_);
};

// Thread-safe.
//
//   const auto tls = ProcessTls::Open({.folder = flags.certs, .insecure = flags.insecure,
//                                      .role = Role::kWorker, .name = flags.name});
//   if (!tls.ok()) return Fail(tls.status());
//   auto transport = MakeGrpcTransport({.scope = ScopeOf(*tls, flags.insecure), .tls = *tls});
//   auto channel = transport->Connect({address, "alpha"}, SelfOf(*tls, session));
class ProcessTls {
 public:
  // Null: neither certificates nor a reason to refuse. UNAUTHENTICATED: the certificate is no good
  // or somebody else's; the text names file, subject and expiry. INVALID_ARGUMENT: both a folder
  // and
  // --insecure were given.
  static absl::StatusOr<std::shared_ptr<ProcessTls>> Open(const ProcessTlsOptions& options);

  const std::shared_ptr<CredentialSource>& source() const { return source_; }
  const Identity& self() const { return source_->self(); }

  // Of a channel to the one of that role and name, which shows what Current() has now for good.
  // Without a name any of that role will do. `met`, where given, learns who it is.
  std::shared_ptr<grpc::ChannelCredentials> ChannelTo(Role role, std::optional<std::string> name,
                                                      std::shared_ptr<MetPeer> met = nullptr);
  // The host's name that a channel to that role asks for (TLS' server name), which is in the
  // certificates of the role: a name that is in none is told in the log of the other end. Nothing
  // is decided by it.
  std::string HostOf(Role role) const;
  // Before a call: whether both ends still count, as of now. UNAVAILABLE: the certificate of the
  // one that was met has expired or was revoked since, or this process has another one than it
  // shows there; nothing may be sent, and another channel may find, or shows, a new one. OK where
  // nobody was met.
  absl::Status CheckMet(const MetPeer& met);
  // After a call that was answered: the same of who answered it. OK where nobody did.
  absl::Status CheckAnswered(const grpc::ClientContext& call);
  // Lets in who has a certificate of the cluster's CA; Admit asks the rest. Of one port; outlives
  // its server.
  std::shared_ptr<grpc::ServerCredentials> ForPort();

  // Who makes a call, with the session credential that came with it, if he may make it.
  // UNAUTHENTICATED: no certificate, an expired or revoked one, or one of another cluster: as it is
  // now, however old the connection is. PERMISSION_DENIED: his role may not.
  absl::StatusOr<Caller> Admit(const grpc::ServerContextBase& context, Rpc rpc);

 private:
  // What Verify said of a certificate, good until one of these changes, and for a minute.
  struct Seen {
    Caller caller;
    absl::Time at;
    absl::Time until;
    std::shared_ptr<const Credentials> mine;
    std::shared_ptr<const Revocations> revoked;
  };

  ProcessTls(std::shared_ptr<CredentialSource> source, const ProcessTlsOptions& options);
  absl::StatusOr<Caller> AdmitSilently(const grpc::ServerContextBase& context, Rpc rpc);
  absl::StatusOr<Caller> Who(const std::string& certificate);
  absl::Status CheckPeerNow(const std::string& certificate);

  const std::shared_ptr<CredentialSource> source_;
  CertificateWatch watch_;
  Mutex mu_;
  // By certificate (PEM); at most kMostSeen.
  std::map<std::string, Seen> seen_ ABSL_GUARDED_BY(mu_);
};

// As who a process calls.
Caller SelfOf(const std::shared_ptr<ProcessTls>& tls,
              std::shared_ptr<const HeldSession> jobs = nullptr);
// What a process may listen on.
BindScope ScopeOf(const std::shared_ptr<ProcessTls>& tls, bool insecure);
// Of every port: the caller, who is nobody where `tls` is null.
absl::StatusOr<Caller> AdmitCall(const std::shared_ptr<ProcessTls>& tls,
                                 const grpc::ServerContextBase& context, Rpc rpc);

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_TRANSPORT_PROCESS_TLS_H_

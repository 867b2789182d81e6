// gRPC's credentials of a process that shows its certificate and asks for its peer's: mutual TLS.
// The TLS library looks at keys, signatures and times; who may be there decides a CheckPeer, which
// VerifyPeer (proto/runtime/credentials/peer_verifier.h) makes from what the caller expects.
#ifndef STRATA_PROTO_RUNTIME_TRANSPORT_TLS_CREDENTIALS_H_
#define STRATA_PROTO_RUNTIME_TRANSPORT_TLS_CREDENTIALS_H_

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/runtime/credentials/identity_files.h"
#include "proto/runtime/credentials/peer_verifier.h"

namespace strata {

// Asked once for each connection, after the handshake, with the peer's certificate (PEM); an error
// ends the connection. Called by gRPC's threads, several at a time: it must not wait.
using CheckPeer = std::function<absl::StatusOr<Caller>(absl::string_view certificate)>;

struct TlsFiles {
  std::string folder;  // as LoadCredentials takes it: `.../current` of `strata certs`
  // How often the files are looked at, for connections that begin later.
  uint32_t refresh_seconds = 10;
};

// Reads the files again while anything made of it lives, in a thread of its own. Connections share
// one.
using TlsProvider = std::shared_ptr<grpc::experimental::CertificateProviderInterface>;
// Errors are LoadCredentials': the files are read before gRPC sees them, which tells less.
absl::StatusOr<TlsProvider> WatchTlsFiles(const TlsFiles& files);
// These credentials for good, so that who makes a connection knows what it shows.
TlsProvider ProvideTls(const Credentials& credentials);

// Names of hosts are not compared: certificates are of names in the cluster.
std::shared_ptr<grpc::ChannelCredentials> TlsChannelCredentials(const TlsProvider& provider,
                                                                CheckPeer check);
std::shared_ptr<grpc::ServerCredentials> TlsServerCredentials(const TlsProvider& provider,
                                                              CheckPeer check);

// With a provider of their own; errors are WatchTlsFiles'.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> TlsChannelCredentials(
    const TlsFiles& files, CheckPeer check);
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> TlsServerCredentials(const TlsFiles& files,
                                                                              CheckPeer check);

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_TRANSPORT_TLS_CREDENTIALS_H_

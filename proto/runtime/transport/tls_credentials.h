// gRPC's credentials of a process that shows its certificate and asks for its peer's: mutual TLS.
// The TLS library looks at keys, signatures and times; who may be there decides VerifyPeer
// (proto/runtime/credentials/peer_verifier.h), which a CheckPeer asks. gRPC reads no files: it has
// what a CredentialSource has verified, and nothing else.
#ifndef STRATA_PROTO_RUNTIME_TRANSPORT_TLS_CREDENTIALS_H_
#define STRATA_PROTO_RUNTIME_TRANSPORT_TLS_CREDENTIALS_H_

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/runtime/credentials/caller.h"
#include "proto/runtime/credentials/identity_files.h"

namespace strata {

// Asked once for each connection, after the handshake, with the peer's certificate (PEM); an error
// ends the connection. Called by gRPC's threads, several at a time: it must not wait.
using CheckPeer = std::function<absl::StatusOr<Caller>(absl::string_view certificate)>;

// Of a channel all of whose connections show `mine`: who has another certificate by now makes
// another channel. Names of hosts are not compared: certificates are of names in the cluster.
std::shared_ptr<grpc::ChannelCredentials> TlsChannelCredentials(const Credentials& mine,
                                                                CheckPeer check);

// What a port shows, and whose certificates it takes, as of now; never null. Called by gRPC's
// threads: it must not wait.
using ShownNow = std::function<std::shared_ptr<const Credentials>()>;

// Of one port, whose connections show what `shown` says when their handshakes begin. It takes every
// certificate of the authorities that is good by the machine's clock. Outlives the server that it
// is given to.
std::shared_ptr<grpc::ServerCredentials> TlsServerCredentials(ShownNow shown);

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_TRANSPORT_TLS_CREDENTIALS_H_

// Who was not let in, on the side that listens: named in the log, and counted.
#ifndef STRATA_PROTO_RUNTIME_TRANSPORT_REFUSAL_LOG_H_
#define STRATA_PROTO_RUNTIME_TRANSPORT_REFUSAL_LOG_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace strata {

// From now on what gRPC says of its own accord goes to this process's log, and not to stderr alone:
// as `grpc`, or as `handshake_failed` where it is about one that TLS ended. Of that it tells the
// reason, and neither the other end's address nor which end began. A line of either kind comes at
// most every ten seconds. A daemon calls it once, when it has a log.
void FollowGrpcLog();

// A call that `peer` (address, as gRPC writes it) may not make: the line `caller_refused`, at most
// every ten seconds.
void NoteRefusedCall(const std::string& peer, absl::string_view method, const absl::Status& why);

// Since the process began, those included that had no line.
uint64_t FailedHandshakes();  // since FollowGrpcLog; of connections to it and from it
uint64_t RefusedCalls();

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_TRANSPORT_REFUSAL_LOG_H_

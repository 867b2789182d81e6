// The host by which other machines reach a process that listens on every address of its own.
#ifndef STRATA_PROTO_RUNTIME_DAEMON_ADVERTISED_HOST_H_
#define STRATA_PROTO_RUNTIME_DAEMON_ADVERTISED_HOST_H_

#include <string>

#include "absl/status/statusor.h"

namespace strata {

// What a process tells the scheduler instead of the host that it listens on.
// listen: "host:port" as it was asked for. advertise: the host that the user gave, or empty.
// scheduler: "host:port" of the scheduler.
// Empty: the host of `listen` stands. Else `advertise`, or, where `listen` is any address (0.0.0.0,
// [::]), the one of this machine from which the scheduler is reached: nothing is sent for that, but
// a name is resolved.
// INVALID_ARGUMENT: `advertise` is no host, or `listen` is loopback and cannot be reached by it.
// UNAVAILABLE: the scheduler's name is unknown here, or there is no way to it; says what to do.
absl::StatusOr<std::string> AdvertisedHost(const std::string& listen, const std::string& advertise,
                                           const std::string& scheduler);

// `bound` ("host:port") by another host; as it is where `host` is empty or `bound` is. An IPv6 host
// gets its brackets.
std::string AtHost(const std::string& bound, const std::string& host);

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_DAEMON_ADVERTISED_HOST_H_

#include "proto/runtime/daemon/advertised_host.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/runtime/transport/bind_policy.h"

namespace strata {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

bool IsAny(const std::string& host) {
  in_addr v4{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return v4.s_addr == INADDR_ANY;
  in6_addr v6{};
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_UNSPECIFIED(&v6);
}

absl::Status NoWay(const std::string& scheduler, absl::string_view why) {
  return absl::UnavailableError(
      absl::StrCat("cannot tell by which address other machines reach this one, since the way to "
                   "--scheduler ",
                   scheduler, " is not known (", why,
                   "); give --advertise HOST, or --listen with an address of this machine"));
}

// The local end of a datagram socket that is connected to `to`; empty with errno set.
std::string LocalEnd(const addrinfo& to) {
  const int fd = socket(to.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return "";
  sockaddr_storage local{};
  socklen_t size = sizeof(local);
  char host[NI_MAXHOST] = "";
  if (connect(fd, to.ai_addr, to.ai_addrlen) == 0 &&
      getsockname(fd, reinterpret_cast<sockaddr*>(&local), &size) == 0) {
    getnameinfo(reinterpret_cast<sockaddr*>(&local), size, host, sizeof(host), nullptr, 0,
                NI_NUMERICHOST);
  }
  const int error = errno;
  close(fd);
  errno = error;
  return host;
}

absl::StatusOr<std::string> HostTowards(const std::string& scheduler) {
  auto at = ParseHostPort(scheduler);
  if (!at.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--scheduler: ", at.status().message()));
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int failed =
      getaddrinfo(at->host.c_str(), std::to_string(at->port).c_str(), &hints, &found);
  const Addresses addresses(found, &freeaddrinfo);
  if (failed != 0) return NoWay(scheduler, gai_strerror(failed));
  for (const addrinfo* to = found; to != nullptr; to = to->ai_next) {
    std::string host = LocalEnd(*to);
    if (!host.empty()) return host;
  }
  return NoWay(scheduler, std::strerror(errno));
}

}  // namespace

absl::StatusOr<std::string> AdvertisedHost(const std::string& listen, const std::string& advertise,
                                           const std::string& scheduler) {
  auto at = ParseHostPort(listen);
  if (!at.ok()) return at.status();
  if (advertise.empty()) return IsAny(at->host) ? HostTowards(scheduler) : std::string();
  // A host alone, with or without brackets.
  const bool bare_v6 = advertise.front() != '[' && advertise.find(':') != std::string::npos;
  auto host = ParseHostPort(bare_v6 ? absl::StrCat("[", advertise, "]:1") : advertise + ":1");
  in6_addr v6{};
  if (!host.ok() || IsAny(host->host) ||
      (bare_v6 && inet_pton(AF_INET6, host->host.c_str(), &v6) != 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--advertise \"", advertise,
                     "\" is not a host that others could reach; expected a name or "
                     "an address without a port"));
  }
  if (!IsAny(at->host) && CheckBindAddress(listen, BindScope::kLoopbackOnly).ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--advertise ", advertise, ": --listen ", listen,
                     " cannot be reached by it; listen on 0.0.0.0 with --insecure"));
  }
  return host->host;
}

std::string AtHost(const std::string& bound, const std::string& host) {
  const size_t colon = bound.rfind(':');
  if (host.empty() || colon == std::string::npos) return bound;
  const bool v6 = host.find(':') != std::string::npos;
  return absl::StrCat(v6 ? "[" : "", host, v6 ? "]" : "", bound.substr(colon));
}

}  // namespace strata

#include "proto/runtime/transport/bind_policy.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace strata {
namespace {

bool IsLoopback(const std::string& host) {
  if (host == "localhost") return true;
  in_addr v4{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  in6_addr v6{};
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

absl::Status NotAnAddress(absl::string_view address, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("address \"", address, "\" ", why,
                                                 "; expected host:port, as in 127.0.0.1:7000"));
}

}  // namespace

absl::StatusOr<HostPort> ParseHostPort(absl::string_view address) {
  const size_t colon = address.rfind(':');
  if (colon == absl::string_view::npos) return NotAnAddress(address, "has no port");
  absl::string_view host = address.substr(0, colon);
  const absl::string_view port_text = address.substr(colon + 1);
  if (host.empty()) return NotAnAddress(address, "has no host");
  if (host.front() == '[' && host.back() == ']' && host.size() > 2) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find_first_of(":[]") != absl::string_view::npos) {
    return NotAnAddress(address, "has a colon in its host (write IPv6 as [::1]:7000)");
  }
  uint32_t port = 0;
  const bool digits = port_text.find_first_not_of("0123456789") == absl::string_view::npos;
  if (!digits || !absl::SimpleAtoi(port_text, &port) || port > 65535) {
    return NotAnAddress(address, absl::StrCat("has port \"", port_text, "\", not 0..65535"));
  }
  return HostPort{std::string(host), static_cast<uint16_t>(port)};
}

absl::Status CheckBindAddress(absl::string_view address, BindScope scope) {
  const absl::StatusOr<HostPort> parsed = ParseHostPort(address);
  if (!parsed.ok()) return parsed.status();
  if (scope != BindScope::kLoopbackOnly || IsLoopback(parsed->host)) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      "refusing to listen on \"", address,
      "\": it can be reached from other machines, and without TLS and authentication anyone there "
      "could read and change what is trained; listen on 127.0.0.1, give certificates (--certs), or "
      "--insecure on a network that you trust"));
}

}  // namespace strata

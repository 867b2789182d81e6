#include "proto/runtime/transport/bind_policy.h"

#include <catch2/catch.hpp>
#include <string>

namespace strata {
namespace {

TEST_CASE("loopback may always be listened on", "[bind]") {
  for (const char* address : {"127.0.0.1:0", "127.0.0.1:65535", "127.5.6.7:80", "localhost:7000",
                              "[::1]:7000", "[0:0:0:0:0:0:0:1]:7000"}) {
    INFO(address);
    CHECK(CheckBindAddress(address, BindScope::kLoopbackOnly).ok());
    CHECK(CheckBindAddress(address, BindScope::kAnywhereInsecure).ok());
  }
}

TEST_CASE("beyond loopback needs --insecure, and the refusal says why", "[bind]") {
  for (const char* address :
       {"0.0.0.0:7000", "[::]:7000", "10.1.2.3:0", "[fe80::1]:1", "126.255.255.255:1",
        "128.0.0.1:1", "node7:7000", "127.0.0.1.example.org:80", "localhost.example.org:80",
        "[::ffff:10.0.0.1]:1"}) {
    const absl::Status s = CheckBindAddress(address, BindScope::kLoopbackOnly);
    INFO(address << ": " << s.ToString());
    CHECK(s.code() == absl::StatusCode::kPermissionDenied);
    for (const char* part : {address, "TLS", "--insecure", "127.0.0.1"}) {
      CHECK(std::string(s.message()).find(part) != std::string::npos);
    }
    CHECK(CheckBindAddress(address, BindScope::kAnywhereInsecure).ok());
  }
}

TEST_CASE("what is no address is refused with the reason", "[bind]") {
  const auto refused = [](const std::string& address, const std::string& why) {
    for (BindScope scope : {BindScope::kLoopbackOnly, BindScope::kAnywhereInsecure}) {
      const absl::Status s = CheckBindAddress(address, scope);
      INFO(s.ToString());
      CHECK(s.code() == absl::StatusCode::kInvalidArgument);
      CHECK(std::string(s.message()).find(why) != std::string::npos);
    }
  };
  refused("", "no port");
  refused("127.0.0.1", "no port");
  refused(":7000", "no host");
  refused("127.0.0.1:", "port \"\"");
  refused("127.0.0.1:65536", "65536");
  refused("127.0.0.1:-1", "-1");
  refused("127.0.0.1:+1", "+1");
  refused("127.0.0.1:http", "http");
  refused("127.0.0.1: 1", "port");
  refused("::1:7000", "colon");
  refused("[]:7000", "colon");
  refused("ipv4:127.0.0.1:7000", "colon");
}

TEST_CASE("addresses are taken apart", "[bind]") {
  CHECK(ParseHostPort("[::1]:80")->host == "::1");
  CHECK(ParseHostPort("[::1]:80")->port == 80);
  CHECK(ParseHostPort("a.b:0")->host == "a.b");
}

}  // namespace
}  // namespace strata

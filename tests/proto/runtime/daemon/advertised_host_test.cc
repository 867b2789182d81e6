#include "proto/runtime/daemon/advertised_host.h"

#include <catch2/catch.hpp>
#include <string>

namespace strata {
namespace {

TEST_CASE("what listens on one address is reached there", "[bind]") {
  for (const char* listen : {"127.0.0.1:0", "10.1.2.3:7000", "[::1]:7", "node7:7000"}) {
    INFO(listen);
    auto host = AdvertisedHost(listen, "", "127.0.0.1:7070");
    REQUIRE(host.ok());
    CHECK(host->empty());
  }
}

TEST_CASE("what listens on every address is reached by the one towards the scheduler", "[bind]") {
  for (const char* listen : {"0.0.0.0:0", "[::]:0"}) {
    for (const char* scheduler : {"127.0.0.1:7070", "127.0.0.9:1", "0.0.0.0:7070"}) {
      INFO(listen << " " << scheduler);
      auto host = AdvertisedHost(listen, "", scheduler);
      REQUIRE(host.ok());
      CHECK(*host == "127.0.0.1");
    }
  }
}

TEST_CASE("the host that is given wins", "[bind]") {
  CHECK(*AdvertisedHost("0.0.0.0:0", "node7", "no.such.host.invalid:1") == "node7");
  CHECK(*AdvertisedHost("10.0.0.1:0", "10.0.0.2", "127.0.0.1:1") == "10.0.0.2");
  CHECK(*AdvertisedHost("[::]:0", "fe80::1", "127.0.0.1:1") == "fe80::1");
  CHECK(*AdvertisedHost("[::]:0", "[fe80::1]", "127.0.0.1:1") == "fe80::1");
}

TEST_CASE("what could reach nobody is refused", "[bind]") {
  const auto refused = [](const char* listen, const char* advertise, const char* scheduler,
                          absl::StatusCode code, const std::string& says) {
    auto host = AdvertisedHost(listen, advertise, scheduler);
    INFO(listen << " " << advertise << ": " << host.status().ToString());
    CHECK(host.status().code() == code);
    CHECK(std::string(host.status().message()).find(says) != std::string::npos);
  };
  constexpr auto kWrong = absl::StatusCode::kInvalidArgument;
  for (const char* host : {"0.0.0.0", "::", "[::]", "a:1", "10.0.0.1:7000", "[", "[]"}) {
    refused("0.0.0.0:0", host, "127.0.0.1:1", kWrong, "expected a name or an address");
  }
  refused("127.0.0.1:0", "10.0.0.1", "127.0.0.1:1", kWrong, "listen on 0.0.0.0");
  refused("0.0.0.0", "", "127.0.0.1:1", kWrong, "has no port");
  refused("0.0.0.0:0", "", "127.0.0.1", kWrong, "--scheduler: address \"127.0.0.1\" has no port");
  refused("0.0.0.0:0", "", "no.such.host.invalid:1", absl::StatusCode::kUnavailable,
          "give --advertise HOST");
}

TEST_CASE("an address at another host keeps its port", "[bind]") {
  CHECK(AtHost("0.0.0.0:7001", "10.0.0.2") == "10.0.0.2:7001");
  CHECK(AtHost("[::]:7001", "fe80::1") == "[fe80::1]:7001");
  CHECK(AtHost("0.0.0.0:7001", "") == "0.0.0.0:7001");
  CHECK(AtHost("", "10.0.0.2") == "");
}

}  // namespace
}  // namespace strata

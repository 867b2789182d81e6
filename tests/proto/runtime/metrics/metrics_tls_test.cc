// The metrics port by TLS, with real handshakes: who is let in, and what the port shows.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <list>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/runtime/base/manual_clock.h"
#include "proto/runtime/base/timer.h"
#include "proto/runtime/credentials/authority_files.h"
#include "proto/runtime/credentials/credential_source.h"
#include "proto/runtime/credentials/folder_credentials.h"
#include "proto/runtime/credentials/identity.h"
#include "proto/runtime/credentials/identity_files.h"
#include "proto/runtime/credentials/revocations.h"
#include "proto/runtime/metrics/metrics_client.h"
#include "proto/runtime/metrics/metrics_server.h"
#include "tests/proto/runtime/credentials/made_certificates.h"
#include "tests/proto/runtime/metrics/scraper.h"
#include "tests/temp_folder.h"

namespace strata {
namespace {

namespace fs = std::filesystem;
using testing::Connected;
using testing::IsOk;
using testing::kCluster;
using testing::kOtherCluster;
using testing::kScrape;
using testing::ScrapeByTls;
using testing::TestTime;
using testing::TlsAnswer;

constexpr absl::Duration kDay = absl::Hours(24);
constexpr absl::Duration kLookAgain = absl::Seconds(10);

// A cluster's authority, and certificates of it.
class Certs {
 public:
  explicit Certs(const ClusterId& cluster = kCluster) {
    REQUIRE(InitAuthority(folder(), cluster, 300, TestTime()).ok());
  }
  // The folder that a process is given.
  std::string Issue(Role role, const std::string& name, int days = 200,
                    absl::Time now = TestTime()) const {
    const auto made = IssueIdentity(folder(), {.role = role, .name = name, .days = days}, now);
    REQUIRE(made.ok());
    return fs::path(made->file).parent_path().string();
  }
  std::string folder() const { return temp_.path() + "/certs"; }

 private:
  const TempFolder temp_;
};

// The port of a server, alpha, at a time that is moved by hand.
class Port {
 public:
  Port() {
    auto source = OpenCredentials({.folder = certs.Issue(Role::kServer, "alpha", 20),
                                   .clock = &clock,
                                   .look_again = kLookAgain});
    REQUIRE(source.ok());
    credentials = *source;
    auto server = MetricsServer::Start({.address = "127.0.0.1:0",
                                        .text =
                                            [this] {
                                              ++scrapes;
                                              return std::string("strata_x 1\n");
                                            },
                                        .credentials = credentials,
                                        .timer = Timer::Real()});
    REQUIRE(server.ok());
    server_ = *std::move(server);
  }

  uint16_t port() const { return server_->port(); }
  TlsAnswer As(const std::string& folder) const { return ScrapeByTls(port(), {.folder = folder}); }
  std::string Serial() const { return credentials->Current()->certificate.facts.serial; }
  void CheckRefused(const testing::TlsClient& client) {
    const int before = scrapes;
    const TlsAnswer answer = ScrapeByTls(port(), client);
    CHECK(answer.text.empty());
    CHECK_FALSE(answer.error.empty());
    CHECK(scrapes == before);
  }

  const Certs certs;
  ManualClock clock{TestTime()};
  std::shared_ptr<CredentialSource> credentials;
  std::atomic<int> scrapes{0};

 private:
  std::unique_ptr<MetricsServer> server_;
};

TEST_CASE("every role of the cluster reads metrics by TLS", "[tls]") {
  Port port;
  for (const Role role : kRoles) {
    INFO(RoleName(role));
    const TlsAnswer answer = port.As(port.certs.Issue(role, "someone"));
    INFO(answer.error);
    CHECK(IsOk(answer.text));
    CHECK(absl::EndsWith(answer.text, "\r\n\r\nstrata_x 1\n"));
    CHECK(answer.serial == port.Serial());
    // Else a certificate that is revoked later would not be looked at.
    CHECK_FALSE(answer.resumable);
  }
  CHECK(port.scrapes == 5);
}

TEST_CASE("nobody else reads metrics by TLS", "[tls]") {
  Port port;
  const std::string reader = port.certs.Issue(Role::kReader, "bob");
  const Certs other(kOtherCluster), same_name(kCluster);
  SECTION("no certificate") { port.CheckRefused({}); }
  SECTION("another cluster's") { port.CheckRefused({.folder = other.Issue(Role::kReader, "bob")}); }
  SECTION("another authority of the same name") {
    port.CheckRefused({.folder = same_name.Issue(Role::kReader, "bob")});
  }
  SECTION("one that has expired") {
    const std::string brief = port.certs.Issue(Role::kReader, "brief", 1);
    CHECK(IsOk(port.As(brief).text));
    port.clock.Advance(kDay + absl::Seconds(1));
    port.CheckRefused({.folder = brief});
  }
  SECTION("one whose time has not come") {
    const std::string early = port.certs.Issue(Role::kReader, "early", 1, TestTime() + 2 * kDay);
    port.CheckRefused({.folder = early});
    port.clock.Advance(2 * kDay);
    CHECK(IsOk(port.As(early).text));
  }
  SECTION("one that was revoked") {
    CHECK(IsOk(port.As(reader).text));
    Revocations revoked;
    revoked.Add(LoadCredentials(reader)->certificate.facts.serial, {"reader/bob", TestTime()});
    port.credentials->SetRevoked(revoked);
    port.CheckRefused({.folder = reader});
    REQUIRE(RenewIdentity(port.certs.folder(), {.role = Role::kReader, .name = "bob"}, TestTime())
                .ok());
  }
  SECTION("TLS 1.2") {
    port.CheckRefused({.folder = reader, .tls12 = true});
    CHECK(ScrapeByTls(port.port(), {.folder = reader, .tls12 = true}).serial.empty());
  }
  CHECK(IsOk(port.As(reader).text));
}

TEST_CASE("a client that knows CAs and hosts alone finds the name of the role", "[tls]") {
  Port port;
  const std::string reader = port.certs.Issue(Role::kReader, "bob");
  const auto ask = [&](const std::string& ca_folder, const std::string& host) {
    return ScrapeByTls(port.port(), {.folder = reader,
                                     .ca_file = ca_folder + "/ca.crt",
                                     .host = host,
                                     .time = absl::ToUnixSeconds(TestTime())});
  };
  CHECK(IsOk(ask(reader, RoleHost(kCluster, Role::kServer)).text));
  for (const std::string& host :
       {RoleHost(kCluster, Role::kScheduler), RoleHost(kOtherCluster, Role::kServer),
        std::string("localhost"), std::string("127.0.0.1"), std::string("alpha")}) {
    INFO(host);
    const TlsAnswer answer = ask(reader, host);
    CHECK(answer.text.empty());
    CHECK(absl::StrContains(answer.error, "certificate verify failed"));
  }
  const Certs other;
  CHECK(ask(other.Issue(Role::kReader, "bob"), RoleHost(kCluster, Role::kServer)).text.empty());
}

TEST_CASE("our own client and the port know each other", "[tls]") {
  Port port;
  const auto source = [&](const std::string& folder) {
    auto opened = OpenCredentials({.folder = folder, .clock = &port.clock});
    REQUIRE(opened.ok());
    return *opened;
  };
  const auto me = source(port.certs.Issue(Role::kOperator, "me"));
  MetricsRequest request = {.address = absl::StrCat("127.0.0.1:", port.port()),
                            .timeout = absl::Seconds(60),
                            .clock = Timer::Real(),
                            .credentials = me};
  const auto text = FetchMetrics(request);
  INFO(text.status());
  REQUIRE(text.ok());
  CHECK(*text == "strata_x 1\n");
  const auto refused = [&](std::initializer_list<absl::string_view> says) {
    const int before = port.scrapes;
    const absl::Status s = FetchMetrics(request).status();
    testing::CheckText(s.message(), {request.address});
    testing::CheckText(s.message(), says);
    CHECK(port.scrapes == before);
    return s.code();
  };
  request.name = "alpha";
  CHECK(FetchMetrics(request).ok());
  request.name = "beta";
  CHECK(refused({"it is for server/alpha", "only 'beta'"}) == absl::StatusCode::kPermissionDenied);
  request.name.reset();
  Revocations revoked;
  revoked.Add(port.Serial(), {"server/alpha", TestTime()});
  me->SetRevoked(revoked);
  CHECK(refused({"CN=alpha", "it was revoked"}) == absl::StatusCode::kUnauthenticated);
  me->SetRevoked({});
  // The port refuses the client: TLS tells it that much.
  request.credentials = source(Certs(kOtherCluster).Issue(Role::kOperator, "me"));
  CHECK(refused({"this cluster's CA has not signed it"}) == absl::StatusCode::kUnauthenticated);
  revoked = {};
  revoked.Add(me->Current()->certificate.facts.serial, {"operator/me", TestTime()});
  port.credentials->SetRevoked(revoked);
  request.credentials = me;
  CHECK(refused({"alert"}) == absl::StatusCode::kUnavailable);
  port.credentials->SetRevoked({});
  request.credentials = nullptr;
  CHECK(refused({}) == absl::StatusCode::kUnavailable);
}

TEST_CASE("plain HTTP at the port of TLS gets an end, and no numbers", "[tls]") {
  Port port;
  Connected client(port.port());
  client.Send(kScrape);
  CHECK_FALSE(absl::StrContains(client.Receive(), "strata_x"));
  Connected longer(port.port());
  longer.Send(std::string(1 << 20, 'a'));
  CHECK_FALSE(absl::StrContains(longer.Receive(), "strata_x"));
  CHECK(port.scrapes == 0);
  CHECK(IsOk(port.As(port.certs.Issue(Role::kReader, "bob")).text));
}

TEST_CASE("renewed certificates are shown while requests go on", "[tls]") {
  Port port;
  const std::string reader = port.certs.Issue(Role::kReader, "bob");
  std::set<std::string> all = {port.Serial()};
  std::atomic<bool> done{false};
  std::atomic<int> served{0};
  std::vector<TlsAnswer> odd;
  std::set<std::string> seen;
  std::thread traffic([&] {
    while (!done) {
      TlsAnswer answer = port.As(reader);
      if (!IsOk(answer.text)) odd.push_back(answer);
      seen.insert(answer.serial);
      ++served;
    }
  });
  for (int i = 0; i < 5; ++i) {
    const auto renewed =
        RenewIdentity(port.certs.folder(), {.role = Role::kServer, .name = "alpha", .days = 20},
                      port.clock.Now());
    REQUIRE(renewed.ok());
    all.insert(renewed->facts.serial);
    // The one before has expired by then.
    port.clock.Advance(20 * kDay - absl::Minutes(1));
    // The second one began after that, and so has looked.
    const int before = served;
    while (served < before + 2) std::this_thread::yield();
    CHECK(port.As(reader).serial == renewed->facts.serial);
  }
  done = true;
  traffic.join();
  CHECK(odd.empty());
  CHECK(std::includes(all.begin(), all.end(), seen.begin(), seen.end()));
  CHECK(port.credentials->problem().ok());
}

TEST_CASE("a renewal that is no good leaves the port as it was", "[tls]") {
  Port port;
  const std::string reader = port.certs.Issue(Role::kReader, "bob");
  const std::string good = port.Serial();
  std::ofstream(port.certs.folder() + "/server/alpha/current/tls.crt") << "damaged";
  port.clock.Advance(kLookAgain);
  const TlsAnswer answer = port.As(reader);
  CHECK(IsOk(answer.text));
  CHECK(answer.serial == good);
  CHECK_FALSE(port.credentials->problem().ok());
}

TEST_CASE("clients that stop in the midst of a handshake do not hold up others", "[tls]") {
  Port port;
  const std::string reader = port.certs.Issue(Role::kReader, "bob");
  std::list<Connected> slow;
  slow.emplace_back(port.port());
  // The head of a handshake record of TLS, and nothing more.
  slow.emplace_back(port.port()).Send(absl::string_view("\x16\x03\x01\x02\x00\x01", 6));
  CHECK(IsOk(port.As(reader).text));
}

}  // namespace
}  // namespace strata

// What a daemon does with credentials: its metrics go by TLS, and tell of the certificate.
#include <catch2/catch.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/runtime/base/manual_clock.h"
#include "proto/runtime/base/timer.h"
#include "proto/runtime/credentials/authority_files.h"
#include "proto/runtime/credentials/credential_source.h"
#include "proto/runtime/credentials/folder_credentials.h"
#include "proto/runtime/credentials/identity.h"
#include "proto/runtime/credentials/identity_files.h"
#include "proto/runtime/daemon/daemon.h"
#include "proto/runtime/metrics/metrics_client.h"
#include "tests/proto/runtime/credentials/made_certificates.h"
#include "tests/temp_folder.h"

namespace strata {
namespace {

using testing::kCluster;
using testing::TestTime;

constexpr char kNotAfter[] = "\nstrata_certificate_not_after_timestamp_seconds ";

// A daemon with one metric.
struct Running {
  explicit Running(const std::string& listen,
                   std::shared_ptr<CredentialSource> credentials = nullptr) {
    auto started = Daemon::Start({.program = "daemon",
                                  .directory = temp.path() + "/daemon",
                                  .metrics_listen = listen,
                                  .credentials = std::move(credentials)});
    status = started.status();
    if (!started.ok()) return;
    daemon = *std::move(started);
    daemon->SetMetrics([] {
      return std::vector<Metric>{{"strata_x", "An x.", 3, false},
                                 {"strata_y", "A y.", 4, false, {{"job", "1"}, {"of", "a\"b"}}},
                                 {"strata_y", "A y.", 5, false, {{"job", "2"}}}};
    });
  }
  absl::StatusOr<std::string> Metrics(std::shared_ptr<CredentialSource> as = nullptr) const {
    std::string address = daemon->metrics_address();
    address = absl::StrCat("127.0.0.1", address.substr(address.rfind(':')));
    return FetchMetrics({.address = address,
                         .timeout = absl::Seconds(60),
                         .clock = Timer::Real(),
                         .credentials = std::move(as)});
  }

  const TempFolder temp;
  absl::Status status;
  std::unique_ptr<Daemon> daemon;
};

TEST_CASE("metrics without credentials are plain, of loopback, and of no certificate", "[daemon]") {
  CHECK(absl::IsPermissionDenied(Running("0.0.0.0:0").status));
  const Running running("127.0.0.1:0");
  REQUIRE(running.status.ok());
  const auto text = running.Metrics();
  REQUIRE(text.ok());
  CHECK(absl::StrContains(*text, "# HELP strata_x An x.\n# TYPE strata_x gauge\nstrata_x 3\n"));
  CHECK(absl::StrContains(*text,
                          "# HELP strata_y A y.\n# TYPE strata_y gauge\n"
                          "strata_y{job=\"1\",of=\"a\\\"b\"} 4\nstrata_y{job=\"2\"} 5\n"));
  CHECK(absl::StrContains(*text, "# TYPE strata_process_cpu_seconds_total counter\n"));
  CHECK_FALSE(absl::StrContains(*text, "strata_certificate"));
}

TEST_CASE("metrics with credentials go by TLS anywhere, and say when the certificate expires",
          "[daemon]") {
  const TempFolder temp;
  const std::string certs = temp.path() + "/certs";
  REQUIRE(InitAuthority(certs, kCluster, 300, TestTime()).ok());
  ManualClock clock{TestTime()};
  const auto issued = [&](Role role) {
    const auto made = IssueIdentity(certs, {.role = role, .name = "a", .days = 20}, TestTime());
    REQUIRE(made.ok());
    auto source = OpenCredentials(
        {.folder = std::filesystem::path(made->file).parent_path().string(), .clock = &clock});
    REQUIRE(source.ok());
    return *source;
  };
  const Running running("0.0.0.0:0", issued(Role::kServer));
  REQUIRE(running.status.ok());
  CHECK_FALSE(running.Metrics().ok());
  const auto reader = issued(Role::kReader);
  const auto says = [&](absl::Time expires) {
    const auto text = running.Metrics(reader);
    INFO(text.status());
    REQUIRE(text.ok());
    INFO(*text);
    CHECK(absl::StrContains(*text, "\nstrata_x 3\n"));
    CHECK(absl::StrContains(*text, absl::StrCat(kNotAfter, absl::ToUnixSeconds(expires), "\n")));
  };
  says(TestTime() + 20 * absl::Hours(24));
  REQUIRE(RenewIdentity(certs, {.role = Role::kServer, .name = "a", .days = 90}, TestTime()).ok());
  clock.Advance(absl::Seconds(10));
  says(TestTime() + 90 * absl::Hours(24));
}

}  // namespace
}  // namespace strata

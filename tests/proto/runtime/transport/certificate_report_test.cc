#include "proto/runtime/transport/certificate_report.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/runtime/base/manual_clock.h"
#include "proto/runtime/credentials/folder_credentials.h"
#include "proto/runtime/credentials/identity.h"
#include "proto/runtime/credentials/identity_files.h"
#include "proto/runtime/credentials/places.h"
#include "proto/strata/control.pb.h"
#include "tests/proto/runtime/transport/test_certs.h"

namespace strata::testing {
namespace {

NodeReport WithJobs() {
  NodeReport report;
  report.add_server_jobs();
  report.add_worker_jobs();
  report.add_worker_jobs();
  return report;
}

TEST_CASE("a node reports the certificate that it shows, and what is wrong with its files",
          "[report]") {
  const Certs certs;
  ManualClock clock(absl::Now());
  const std::string folder = certs.Issue(Role::kServer, "alpha");
  const auto source = OpenCredentials(
      {.folder = CurrentFolder(certs.folder(), Role::kServer, "alpha"), .clock = &clock});
  REQUIRE(source.ok());
  CertificateReport of(*source);
  const auto reported = [&] {
    NodeReport report = WithJobs();
    of.AddTo(report);
    const absl::Time expires = (*source)->Last()->certificate.facts.valid.until;
    CHECK(report.certificate_not_after_unix_ms() == absl::ToUnixMillis(expires));
    return report;
  };
  CHECK(reported().server_jobs(0).troubles().empty());
  const int64_t first = reported().certificate_not_after_unix_ms();

  std::ofstream(folder + "/tls.crt") << "hello";
  clock.Advance(absl::Seconds(10));
  const int64_t since = absl::ToUnixMillis(clock.Wall(clock.Now()));
  for (int i = 0; i < 2; ++i) {
    const NodeReport report = reported();
    for (const auto* troubles :
         {&report.server_jobs(0).troubles(), &report.worker_jobs(0).troubles(),
          &report.worker_jobs(1).troubles()}) {
      REQUIRE(troubles->size() == 1);
      CHECK(troubles->at(0).reason() == "CertificateUnfit");
      CHECK(absl::StrContains(troubles->at(0).message(), "/tls.crt: "));
      CHECK(troubles->at(0).since_unix_ms() == since);
    }
    clock.Advance(absl::Seconds(10));
  }

  REQUIRE(RenewIdentity(certs.folder(), {.role = Role::kServer, .name = "alpha", .days = 20},
                        absl::Now())
              .ok());
  clock.Advance(absl::Seconds(10));
  CHECK(reported().certificate_not_after_unix_ms() > first);
  CHECK(reported().server_jobs(0).troubles().empty());
}

TEST_CASE("a node without certificates reports none", "[report]") {
  NodeReport report = WithJobs();
  CertificateReport(nullptr).AddTo(report);
  CHECK(report.certificate_not_after_unix_ms() == 0);
  CHECK(report.server_jobs(0).troubles().empty());
}

}  // namespace
}  // namespace strata::testing

#include "proto/runtime/credentials/certificate_watch.h"

#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "proto/runtime/base/manual_timer.h"
#include "proto/runtime/credentials/authority_files.h"
#include "proto/runtime/credentials/folder_credentials.h"
#include "proto/runtime/credentials/identity.h"
#include "proto/runtime/credentials/identity_files.h"
#include "tests/proto/runtime/credentials/made_certificates.h"
#include "tests/temp_folder.h"

namespace strata {
namespace {

TEST_CASE("files that are no good are told once, and that they are good again", "[watch]") {
  const TempFolder temp;
  ManualTimer timer;
  const absl::Time now = timer.Wall(timer.Now());
  REQUIRE(InitAuthority(temp.path(), testing::kCluster, 300, now - absl::Hours(800)).ok());
  const IssueOrder order{.role = Role::kServer, .name = "a", .days = 10};
  REQUIRE(IssueIdentity(temp.path(), order, now).ok());
  const auto source =
      OpenCredentials({.folder = temp.path() + "/server/a/current", .clock = &timer});
  REQUIRE(source.ok());
  const std::string first = (*source)->Last()->certificate.facts.serial;
  std::vector<absl::Status> told;
  std::optional<CertificateWatch> watch(CertificateWatchOptions{
      .source = *source, .timer = &timer, .changed = [&](const absl::Status& problem) {
        told.push_back(problem);  // by the watch's thread, while this one waits for it
      }});
  const auto look = [&] {
    timer.AwaitAlarms(1);
    timer.Advance(absl::Seconds(10));
    timer.AwaitAlarms(1);
  };
  look();
  CHECK(told.empty());
  // Expired; the text says what time it is.
  REQUIRE(RenewIdentity(temp.path(), order, now - absl::Hours(700)).ok());
  for (int i = 0; i < 3; ++i) look();
  REQUIRE(told.size() == 1);
  CHECK(absl::IsUnauthenticated(told[0]));
  CHECK(absl::StrContains(told[0].message(), "tls.crt: "));
  CHECK((*source)->Last()->certificate.facts.serial == first);
  REQUIRE(RenewIdentity(temp.path(), order, now).ok());
  for (int i = 0; i < 2; ++i) look();
  REQUIRE(told.size() == 2);
  CHECK(told[1].ok());
  CHECK((*source)->Last()->certificate.facts.serial != first);
  watch.reset();
}

}  // namespace
}  // namespace strata

#include "tools/cli/certs/certs_text.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/runtime/credentials/certificate.h"
#include "proto/runtime/credentials/certificate_list.h"
#include "proto/runtime/credentials/identity.h"
#include "tests/proto/runtime/credentials/made_certificates.h"
#include "tools/cli/base/days_left.h"

namespace strata {
namespace {

using testing::kCluster;
using testing::TestTime;
using Json = nlohmann::json;

CertificateFacts Facts(const std::string& subject, char digit, int days) {
  CertificateFacts facts;
  facts.subject = subject;
  facts.serial = std::string(32, digit);
  facts.valid = {TestTime(), TestTime() + days * absl::Hours(24)};
  return facts;
}

CertificateList Three() {
  CertificateList list;
  list.authority = {"d/ca/ca.crt", "", Facts("O=strata,OU=ca", 'c', 3650), kCluster};
  const Identity alpha{kCluster, Role::kServer, "alpha"}, r{kCluster, Role::kReader, "r"};
  list.certificates.push_back(
      {{"d/server/alpha/current/tls.crt", "", Facts("O=strata,CN=alpha", 'a', 90), alpha}, false});
  list.certificates.push_back(
      {{"d/reader/r/current/tls.crt", "", Facts("O=strata,CN=r", 'b', 1), r}, true});
  return list;
}

TEST_CASE("days are counted up to the end", "[certs]") {
  const absl::Time end = TestTime();
  CHECK(DaysLeft(end, end - absl::Hours(24 * 90)) == 90);
  CHECK(DaysLeft(end, end - absl::Hours(24 * 90) + absl::Seconds(1)) == 90);
  CHECK(DaysLeft(end, end - absl::Hours(24 * 90) - absl::Seconds(1)) == 91);
  CHECK(DaysLeft(end, end - absl::Seconds(1)) == 1);
  CHECK(DaysLeft(end, end) == 0);
  CHECK(DaysLeft(end, end + absl::Hours(1000)) == 0);
}

TEST_CASE("certificates are a table for people", "[certs]") {
  CHECK(
      CertificatesTable(Three(), TestTime() + absl::Hours(24)) ==
      "ROLE    NAME                              DAYS LEFT  REVOKED  SERIAL                       "
      "     SUBJECT            FILE\n"
      "ca      0123456789abcdef0011223344556677  3649       no       "
      "cccccccccccccccccccccccccccccccc  O=strata,OU=ca     d/ca/ca.crt\n"
      "server  alpha                             89         no       "
      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa  O=strata,CN=alpha  d/server/alpha/current/tls.crt\n"
      "reader  r                                 expired    yes      "
      "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb  O=strata,CN=r      d/reader/r/current/tls.crt\n");
}

TEST_CASE("certificates are one line of JSON for programs", "[certs]") {
  CertificateList list = Three();
  list.problems.push_back(absl::DataLossError("d/worker/w: damaged"));
  const std::string text = CertificatesJson(list, TestTime());
  CHECK(text.find('\n') == std::string::npos);
  const Json json = Json::parse(text);
  CHECK(json["authority"]["clusterId"] == kCluster.text());
  CHECK(json["authority"]["daysLeft"] == 3650);
  REQUIRE(json["certificates"].size() == 2);
  CHECK(json["certificates"][0] == Json({{"role", "server"},
                                         {"name", "alpha"},
                                         {"subject", "O=strata,CN=alpha"},
                                         {"serial", std::string(32, 'a')},
                                         {"expires", "2026-04-01T00:00:00Z"},
                                         {"daysLeft", 90},
                                         {"file", "d/server/alpha/current/tls.crt"},
                                         {"revoked", false}}));
  CHECK(json["certificates"][1]["revoked"] == true);
  CHECK(json["problems"] == Json::array({"d/worker/w: damaged"}));
  const Json one = Json::parse(CertificateJson(list.certificates[0].certificate, TestTime()));
  CHECK(one["role"] == "server");
  CHECK_FALSE(one.contains("revoked"));
  const Json revoked = Json::parse(RevokedJson(Role::kServer, "alpha", {{"1"}, {"2", "3"}}));
  CHECK(revoked["revoked"] == Json::array({"1"}));
  CHECK(revoked["revokedEarlier"] == Json::array({"2", "3"}));
}

}  // namespace
}  // namespace strata

#include "tools/cli/context/context_text.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace strata {
namespace {

using Json = nlohmann::json;

const absl::Time kNow = absl::FromUnixSeconds(1767225600);

std::vector<ShownContext> Three() {
  CertificateFacts facts;
  facts.subject = "O=strata,OU=operator,CN=ann";
  facts.serial = "0123";
  facts.valid = {kNow - absl::Hours(1), kNow + absl::Hours(36)};
  return {{{"prod", "10.0.0.5:7400", "/c/ann", ""}, true, facts, absl::OkStatus()},
          {{"old", "10.0.0.6:7400", "/c/bob", ""},
           false,
           {},
           absl::UnauthenticatedError("/c/bob/tls.crt: it has expired")},
          {{"run", "127.0.0.1:7401", "", "/run"}, false, {}, absl::OkStatus()}};
}

TEST_CASE("for people: a star, the certificate and how long it lasts", "[context]") {
  CHECK(ContextsTable(Three(), kNow) ==
        "CURRENT  NAME  SCHEDULER       DAYS LEFT  SUBJECT                      CERTS\n"
        "*        prod  10.0.0.5:7400   2          O=strata,OU=operator,CN=ann  /c/ann\n"
        "         old   10.0.0.6:7400   -          unusable                     /c/bob\n"
        "         run   127.0.0.1:7401  -          insecure                     -\n");
}

TEST_CASE("for programs: all of it in one line", "[context]") {
  const std::string text = ContextsJson(Three(), kNow);
  CHECK(text.find('\n') == std::string::npos);
  CHECK(Json::parse(text) == Json::parse(R"({"current": "prod", "contexts": [
    {"name": "prod", "current": true, "scheduler": "10.0.0.5:7400", "insecure": false,
     "certs": "/c/ann", "subject": "O=strata,OU=operator,CN=ann", "serial": "0123",
     "expires": "2026-01-02T12:00:00Z", "daysLeft": 2},
    {"name": "old", "current": false, "scheduler": "10.0.0.6:7400", "insecure": false,
     "certs": "/c/bob", "problem": "/c/bob/tls.crt: it has expired"},
    {"name": "run", "current": false, "scheduler": "127.0.0.1:7401", "insecure": true,
     "folder": "/run"}]})"));
  CHECK(Json::parse(ContextsJson({}, kNow)) == Json::parse(R"({"current": null, "contexts": []})"));
  CHECK(Json::parse(ContextJson(Three()[2], kNow))["name"] == "run");
}

}  // namespace
}  // namespace strata

#include "proto/runtime/credentials/rpc_policy.h"

#include <catch2/catch.hpp>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/data.pb.h"
#include "proto/strata/health.pb.h"

namespace strata {
namespace {

// "service.method" of all services.
std::set<std::string> Declared() {
  std::set<std::string> methods;
  for (const auto* file : {NodeReport::descriptor()->file(), PullRequest::descriptor()->file(),
                           grpc::health::v1::HealthCheckRequest::descriptor()->file()}) {
    for (int s = 0; s < file->service_count(); ++s) {
      for (int m = 0; m < file->service(s)->method_count(); ++m) {
        methods.insert(file->service(s)->method(m)->full_name());
      }
    }
  }
  return methods;
}

TEST_CASE("every method of every service stands in the table, and nothing else", "[policy]") {
  std::set<std::string> ruled;
  for (const RpcRule& rule : kRpcRules) {
    CHECK(ruled.insert(absl::StrCat(rule.service, ".", rule.method)).second);
    CHECK(&RuleOf(rule.rpc) == &rule);
  }
  CHECK(ruled == Declared());
}

TEST_CASE("who may call what", "[policy]") {
  // Scheduler, server, worker, operator, reader.
  const std::map<std::string, std::string> expected = {
      {"OpenSession", "..wor"}, {"Pull", "..wor"},
      {"Push", "..w.."},        {"Mark", "..w.."},
      {"Prefetch", "..w.."},    {"Forward", ".s..."},
      {"Sync", ".sw.."},        {"Submit", "...o."},
      {"GetJob", "...or"},      {"ListJobs", "...or"},
      {"CancelJob", "...o."},   {"CreateCheckpoint", "...o."},
      {"GetCluster", "...or"},  {"GetShards", "...or"},
      {"GetEvents", "...or"},   {"SettleQuarantine", "...o."},
      {"Check", "cswor"},       {"Watch", "cswor"}};
  REQUIRE(expected.size() == std::size(kRpcRules));
  const std::string letters = "cswor";
  for (const RpcRule& rule : kRpcRules) {
    std::string allowed;
    for (const Role role : kRoles) {
      const absl::Status may = CheckRole({.name = "x", .role = role}, rule.rpc);
      allowed += may.ok() ? letters[static_cast<size_t>(role)] : '.';
      if (may.ok()) continue;
      CHECK(absl::IsPermissionDenied(may));
      CHECK(absl::StrContains(may.message(), rule.method));
      CHECK(absl::StrContains(may.message(), absl::StrCat(RoleName(role), "/x")));
    }
    INFO(rule.method);
    CHECK(allowed == expected.at(rule.method));
    CHECK(CheckRole(Caller::Nobody(), rule.rpc).ok());
  }
}

TEST_CASE("what changes a model needs a session credential", "[policy]") {
  for (const RpcRule& rule : kRpcRules) {
    INFO(rule.method);
    const std::string method = rule.method;
    const bool changes = method == "Push" || method == "Mark" || method == "Prefetch";
    CHECK((rule.proof == SessionProof::kAlways) == changes);
    CHECK((rule.proof == SessionProof::kOfLaneHosts) ==
          (method == "Pull" || method == "OpenSession"));
  }
}

}  // namespace
}  // namespace strata

#include "server/session_gate.h"

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "proto/runtime/base/manual_clock.h"

namespace strata::server {
namespace {

constexpr JobIdentity kJob = {{1, 2}, {3, 4}};
constexpr wire::Header kHeader = {JobId(1), SessionId(9), Generation(2), MapEpoch(5)};

class Fixture {
 public:
  Fixture() { gate.SetKeys({signer->Public()}); }

  // Of host 9 of lanes 0 and 1, for an hour; changed by `change`.
  template <typename Change>
  std::string Credential(const Change& change) {
    SessionCredential session = {.cluster = kJob.cluster,
                                 .job = kJob.job,
                                 .generation = kHeader.generation,
                                 .session = kHeader.session,
                                 .worker = "w",
                                 .lanes = {0, 1},
                                 .expires = clock.Now() + absl::Hours(1)};
    change(session);
    return *signer->Sign(session);
  }
  std::string Credential() {
    return Credential([](SessionCredential&) {});
  }

  absl::Status Check(Rpc rpc, const std::string& credential,
                     const std::vector<LaneNode>& lanes = {}, Role role = Role::kWorker,
                     bool as_host = false) {
    const Caller caller = {
        .name = "w", .role = role, .jobs = std::make_shared<HeldSession>(credential)};
    return gate.Check(
        caller, {.rpc = rpc, .job = &kJob, .header = &kHeader, .lanes = lanes, .as_host = as_host});
  }

  ManualClock clock;
  absl::StatusOr<SessionSigner> signer = SessionSigner::New();
  SessionGate gate{&clock};
};

TEST_CASE("a session's own credential opens every call of the job", "[session]") {
  Fixture f;
  for (const Rpc rpc : {Rpc::kOpenSession, Rpc::kPull, Rpc::kPush, Rpc::kMark, Rpc::kPrefetch}) {
    CHECK(f.Check(rpc, f.Credential(), {{0, 2}}, Role::kWorker, true).ok());
  }
}

TEST_CASE("credentials of other jobs, generations, sessions and workers are refused", "[session]") {
  Fixture f;
  const std::vector<std::string> others = {
      f.Credential([](SessionCredential& s) {
        s.cluster = {5, 5};
      }),
      f.Credential([](SessionCredential& s) {
        s.job = {5, 5};
      }),
      f.Credential([](SessionCredential& s) { s.generation = Generation(1); }),
      f.Credential([](SessionCredential& s) { s.session = SessionId(8); }),
      f.Credential([](SessionCredential& s) { s.worker = "v"; })};
  for (const Rpc rpc : {Rpc::kOpenSession, Rpc::kPull, Rpc::kPush, Rpc::kMark, Rpc::kPrefetch}) {
    for (const std::string& other : others) {
      const absl::Status s = f.Check(rpc, other);
      INFO(s);
      CHECK(absl::IsPermissionDenied(s));
      CHECK(absl::StrContains(s.message(), RuleOf(rpc).method));
    }
    CHECK(absl::IsUnauthenticated(f.Check(rpc, "")));
    CHECK(absl::IsUnauthenticated(f.Check(rpc, "hello")));
  }
}

TEST_CASE(
    "where the scheduler is heard, a credential is taken until it expires, with an hour for "
    "clocks that differ",
    "[session]") {
  Fixture f;
  const std::string credential = f.Credential();
  const bool news = GENERATE(false, true);
  const auto hear = [&] { return news ? f.gate.SetKeys({f.signer->Public()}) : f.gate.Hear(); };
  f.clock.Advance(absl::Hours(2) - absl::Seconds(1));
  hear();
  CHECK(f.Check(Rpc::kPush, credential).ok());
  f.clock.Advance(absl::Seconds(1));
  hear();
  const absl::Status s = f.Check(Rpc::kPush, credential);
  INFO(s);
  CHECK(absl::IsUnauthenticated(s));
  CHECK(absl::StrContains(s.message(),
                          "Push of worker/w: its session credential expired at "
                          "2026-01-01T01:00:00Z, and this server has heard the scheduler at "
                          "2026-01-01T02:00:00Z"));
}

TEST_CASE("while the scheduler is away no credential expires, and none comes back to life",
          "[session]") {
  Fixture f;
  const std::string good = f.Credential();
  const std::string expired =
      f.Credential([](SessionCredential& s) { s.expires -= absl::Hours(2); });
  for (const absl::Duration later : {absl::Hours(2), absl::Hours(22), absl::Hours(24 * 30)}) {
    f.clock.Advance(later);
    CHECK(f.Check(Rpc::kPush, good).ok());
    CHECK(absl::IsUnauthenticated(f.Check(Rpc::kPush, expired)));
  }
  f.gate.Hear();
  CHECK(absl::IsUnauthenticated(f.Check(Rpc::kPush, good)));
  CHECK(f.Check(Rpc::kPush, f.Credential()).ok());
}

TEST_CASE("a push speaks for lanes that the session has, or had", "[session]") {
  Fixture f;
  const std::string first = f.Credential();
  CHECK(f.Check(Rpc::kPush, first, {{0, 1}, {1, 2}}).ok());
  CHECK(absl::IsFailedPrecondition(f.Check(Rpc::kPush, first, {{1, 3}})));
  const std::string second = f.Credential([](SessionCredential& s) { s.lanes = {2}; });
  CHECK(f.Check(Rpc::kPush, second, {{2, 3}}).ok());
  // On its way when lane 0 left.
  CHECK(f.Check(Rpc::kPush, second, {{0, 3}}).ok());
  CHECK(absl::IsFailedPrecondition(f.Check(Rpc::kPush, second, {{3, 4}})));
}

TEST_CASE("who reads needs no credential, and gets no ticket", "[session]") {
  Fixture f;
  for (const Role role : {Role::kReader, Role::kOperator}) {
    CHECK(f.Check(Rpc::kPull, "", {}, role).ok());
    CHECK(f.Check(Rpc::kOpenSession, "", {}, role).ok());
    CHECK(absl::IsPermissionDenied(f.Check(Rpc::kPull, "", {}, role, true)));
  }
  CHECK(f.gate.Check(Caller::Nobody(), {.rpc = Rpc::kPush, .job = &kJob, .header = &kHeader}).ok());
}

TEST_CASE("only the keys that were told last count", "[session]") {
  Fixture f;
  const std::string credential = f.Credential();
  CHECK(f.Check(Rpc::kPush, credential).ok());
  f.gate.SetKeys({SessionSigner::New()->Public()});
  CHECK(absl::IsUnauthenticated(f.Check(Rpc::kPush, credential)));
  f.gate.SetKeys({});
  CHECK(absl::IsUnavailable(f.Check(Rpc::kPush, credential)));
}

}  // namespace
}  // namespace strata::server

#include "scheduler/nodes/membership.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace strata::scheduler {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1767225600);
constexpr absl::Duration kLease = absl::Seconds(10);

NodeReport Report(const std::string& name, uint64_t incarnation, uint64_t session = 0) {
  NodeReport report;
  report.set_name(name);
  report.set_role(WORKER);
  report.set_incarnation(incarnation);
  report.set_session(session);
  return report;
}

TEST_CASE("registration gives a session once, however often it is repeated", "[scheduler]") {
  Membership members(kLease);
  uint64_t next = 7;
  auto first = members.Report(Report("a", 1), kStart, next);
  REQUIRE(first.ok());
  REQUIRE(first->session == 7);
  REQUIRE(first->registered);
  // The reply was lost: the same process asks again.
  auto again = members.Report(Report("a", 1), kStart, next);
  REQUIRE(again->session == 7);
  REQUIRE_FALSE(again->registered);
  REQUIRE(next == 8);
  REQUIRE(members.Report(Report("b", 1), kStart, next)->session == 8);
}

TEST_CASE("a new incarnation fences the old one for good", "[scheduler]") {
  Membership members(kLease);
  uint64_t next = 1;
  const uint64_t old = members.Report(Report("a", 1), kStart, next)->session;
  auto fresh = members.Report(Report("a", 2), kStart, next);
  REQUIRE(fresh->replaced);
  REQUIRE(fresh->session != old);
  REQUIRE(absl::IsUnauthenticated(members.Report(Report("a", 1, old), kStart, next).status()));
  REQUIRE(absl::IsUnauthenticated(members.Report(Report("a", 2, old), kStart, next).status()));
  // And may not throw the new one out.
  REQUIRE(absl::IsFailedPrecondition(members.Report(Report("a", 1), kStart, next).status()));
  REQUIRE(members.Report(Report("a", 2, fresh->session), kStart, next).ok());
}

TEST_CASE("a lapsed lease fences nobody", "[scheduler]") {
  Membership members(kLease);
  uint64_t next = 1;
  const uint64_t session = members.Report(Report("a", 1), kStart, next)->session;
  REQUIRE(members.Expire(kStart + kLease).empty());
  REQUIRE(members.Expire(kStart + kLease + absl::Milliseconds(1)) == std::vector<std::string>{"a"});
  REQUIRE_FALSE(members.Find("a")->alive);
  REQUIRE(members.Expire(kStart + kLease * 3).empty());
  auto back = members.Report(Report("a", 1, session), kStart + kLease * 3, next);
  REQUIRE(back.ok());
  REQUIRE(back->revived);
  REQUIRE(members.Find("a")->alive);
}

TEST_CASE("after a restart nobody lapses for one full lease", "[scheduler]") {
  Membership members(kLease);
  uint64_t next = 1;
  REQUIRE(members.Report(Report("a", 1), kStart, next).ok());
  Membership restarted(kLease);
  const absl::Time later = kStart + kLease * 100;
  restarted.Restore(members.Find("a")->record, later);
  REQUIRE(restarted.Expire(later + kLease).empty());
  REQUIRE(restarted.Expire(later + kLease + absl::Milliseconds(1)).size() == 1);
}

TEST_CASE("after a restart a node has time to find the scheduler, however short its lease",
          "[scheduler]") {
  const absl::Duration lease = absl::Milliseconds(200);
  Membership members(lease);
  uint64_t next = 1;
  REQUIRE(members.Report(Report("a", 1), kStart, next).ok());
  Membership restarted(lease);
  restarted.Restore(members.Find("a")->record, kStart);
  // Two seconds of pause of its own and the channel's two, at the worst.
  const absl::Time heard = kStart + absl::Seconds(4);
  REQUIRE(restarted.Expire(heard).empty());
  REQUIRE(restarted.Expire(kStart + Membership::kReturnTime).empty());
  REQUIRE(restarted.Report(Report("a", 1), heard, next).ok());
  // From then on its lease counts.
  REQUIRE(restarted.Expire(heard + lease).empty());
  REQUIRE(restarted.Expire(heard + lease + absl::Milliseconds(1)).size() == 1);
  // Who does not come is not waited for any longer.
  Membership again(lease);
  again.Restore(members.Find("a")->record, kStart);
  const absl::Time late = kStart + Membership::kReturnTime + absl::Milliseconds(1);
  REQUIRE(again.Expire(late) == std::vector<std::string>{"a"});
}

TEST_CASE("bad reports are refused and change nothing", "[scheduler]") {
  Membership members(kLease);
  uint64_t next = 1;
  NodeReport server = Report("s", 1);
  server.set_role(SERVER);
  REQUIRE(absl::IsInvalidArgument(members.Report(server, kStart, next).status()));
  REQUIRE(absl::IsInvalidArgument(members.Report(Report("", 1), kStart, next).status()));
  REQUIRE(absl::IsInvalidArgument(members.Report(Report("a", 0), kStart, next).status()));
  REQUIRE(absl::IsInvalidArgument(
      members.Report(Report(std::string(254, 'x'), 1), kStart, next).status()));
  NodeReport nobody = Report("a", 1);
  nobody.set_role(NODE_ROLE_UNSPECIFIED);
  REQUIRE(absl::IsInvalidArgument(members.Report(nobody, kStart, next).status()));
  REQUIRE(absl::IsUnauthenticated(members.Report(Report("a", 1, 5), kStart, next).status()));
  REQUIRE(members.nodes().empty());
  REQUIRE(next == 1);
  REQUIRE(members.Report(Report("a", 1), kStart, next).ok());
  server = Report("a", 2);
  server.set_role(SERVER);
  server.set_data_address("x:1");
  REQUIRE(members.Report(server, kStart, next).status().code() == absl::StatusCode::kAlreadyExists);
}

TEST_CASE("the number of nodes is bounded", "[scheduler]") {
  Membership members(kLease);
  uint64_t next = 1;
  for (size_t i = 0; i < Membership::kMaxNodes; ++i) {
    REQUIRE(members.Report(Report("n" + std::to_string(i), 1), kStart, next).ok());
  }
  REQUIRE(absl::IsResourceExhausted(members.Report(Report("more", 1), kStart, next).status()));
}

}  // namespace
}  // namespace strata::scheduler

#include "scheduler/nodes/membership.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace strata::scheduler {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1767225600);
constexpr absl::Duration kLease = absl::Seconds(10);

// Looks who is silent, a sixteenth of a lease apart, until `end`. Who lapsed.
std::vector<std::string> Listen(Membership& members, absl::Time begin, absl::Time end) {
  std::vector<std::string> lapsed;
  members.Listen(begin);
  for (absl::Time now = begin; now < end;) {
    now = std::min(end, now + members.lease() / 16);
    REQUIRE(members.Listen(now) == absl::ZeroDuration());
    for (const std::string& name : members.Expire()) lapsed.push_back(name);
  }
  return lapsed;
}

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

TEST_CASE("a zone's name is checked, and kept with what the node cannot reach", "[scheduler]") {
  Membership members(kLease);
  uint64_t next = 7;
  NodeReport report = Report("a", 1);
  for (const std::string& bad :
       {std::string("rack 1"), std::string("a/b"), std::string("r\n"), std::string(65, 'z')}) {
    report.set_zone(bad);
    const absl::Status s = members.Report(report, kStart, next).status();
    INFO(s);
    CHECK(absl::IsInvalidArgument(s));
    CHECK(s.message().find("zone ") == 0);
    CHECK(s.message().find("1 to 64 letters, digits, '.', '_' and '-'") != std::string::npos);
  }
  CHECK(next == 7);
  report.set_zone("Rack-1.b_2" + std::string(54, 'z'));
  for (int i = 0; i < Membership::kMaxPeers + 5; ++i) report.add_peers()->set_name("p");
  REQUIRE(members.Report(report, kStart, next).ok());
  CHECK(members.Find("a")->record.zone() == report.zone());
  CHECK(members.Find("a")->peers.size() == static_cast<size_t>(Membership::kMaxPeers));
  report.set_session(7);
  report.clear_peers();
  REQUIRE(members.Report(report, kStart, next).ok());
  CHECK(members.Find("a")->peers.empty());
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
  const absl::Time end = kStart + kLease;
  REQUIRE(Listen(members, kStart, end).empty());
  REQUIRE(Listen(members, end, end + absl::Milliseconds(1)) == std::vector<std::string>{"a"});
  REQUIRE_FALSE(members.Find("a")->alive);
  REQUIRE(Listen(members, end + absl::Milliseconds(1), kStart + kLease * 3).empty());
  REQUIRE(members.Find("a")->silence == kLease * 3);
  auto back = members.Report(Report("a", 1, session), kStart + kLease * 3, next);
  REQUIRE(back.ok());
  REQUIRE(back->revived);
  REQUIRE(members.Find("a")->alive);
  REQUIRE(members.Find("a")->silence == absl::ZeroDuration());
}

// A report between two looks: the silence is what passed since the report.
TEST_CASE("a lease counts from the report", "[scheduler]") {
  Membership members(kLease);
  uint64_t next = 1;
  members.Listen(kStart);
  REQUIRE(members.Report(Report("a", 1), kStart + absl::Milliseconds(400), next).ok());
  members.Listen(kStart + absl::Milliseconds(500));
  REQUIRE(members.Find("a")->silence == absl::Milliseconds(100));
}

TEST_CASE("a scheduler that stood still found nobody silent", "[scheduler]") {
  Membership members(kLease);
  uint64_t next = 1;
  REQUIRE(members.Report(Report("a", 1), kStart, next).ok());
  REQUIRE(members.Report(Report("dead", 2), kStart, next).ok());
  REQUIRE(Listen(members, kStart, kStart + kLease * 0.9).empty());
  // Stopped. When it goes on, a look comes before what waits to be read.
  const absl::Time back = kStart + kLease * 4;
  REQUIRE(members.Listen(back) == absl::Seconds(31));
  REQUIRE(members.Expire().empty());
  REQUIRE(Listen(members, back, back + kLease * 0.5).empty());
  REQUIRE(members.Report(Report("a", 1), back + kLease * 0.5, next).ok());
  REQUIRE(Listen(members, back + kLease * 0.5, back + kLease).empty());
  // Who is dead has a lease like everybody, and no more.
  REQUIRE(Listen(members, back + kLease, back + kLease * 1.1) == std::vector<std::string>{"dead"});
  REQUIRE(members.Find("a")->alive);
  // Nor does what was known of the dead outlive a gap: it may have come back meanwhile.
  REQUIRE(members.Listen(back + kLease * 3) > absl::ZeroDuration());
  REQUIRE_FALSE(members.Find("dead")->alive);
  REQUIRE(members.Find("dead")->silence == absl::ZeroDuration());
}

TEST_CASE("nobody is silent while reports are refused", "[scheduler]") {
  Membership members(kLease);
  uint64_t next = 1;
  REQUIRE(members.Report(Report("a", 1), kStart, next).ok());
  REQUIRE(Listen(members, kStart, kStart + kLease * 0.9).empty());
  members.Deaf();
  // A moment of it is a gap, too: who was sent away comes again when it sees fit.
  absl::Time now = kStart + kLease * 0.9 + absl::Milliseconds(100);
  REQUIRE(members.Listen(now) == absl::Milliseconds(100));
  REQUIRE(Listen(members, now, now + kLease).empty());
  REQUIRE(Listen(members, now + kLease, now + kLease * 1.1) == std::vector<std::string>{"a"});
}

TEST_CASE("nodes have time to find a scheduler that was away, however short their lease",
          "[scheduler]") {
  const absl::Duration lease = absl::Milliseconds(200);
  Membership members(lease);
  uint64_t next = 1;
  REQUIRE(members.Report(Report("a", 1), kStart, next).ok());
  members.Listen(kStart);
  // Away for a moment: their calls are still there.
  REQUIRE(members.Listen(kStart + lease * 4) == lease * 4);
  REQUIRE(members.Find("a")->silence == absl::ZeroDuration());
  const absl::Time back = kStart + absl::Seconds(3);
  REQUIRE(members.Listen(back) > Membership::kPatience);
  REQUIRE(Listen(members, back, back + Membership::kReturnTime).empty());
  REQUIRE(Listen(members, back + Membership::kReturnTime,
                 back + Membership::kReturnTime + absl::Milliseconds(1)) ==
          std::vector<std::string>{"a"});
}

// However slow: who lapses was looked for eight times, and had not come.
TEST_CASE("a slow scheduler looks often before a lease lapses, and it does lapse", "[scheduler]") {
  for (const double apart : {0.125, 0.3, 0.5}) {
    INFO(apart);
    Membership members(kLease);
    uint64_t next = 1;
    REQUIRE(members.Report(Report("a", 1), kStart, next).ok());
    absl::Time now = kStart;
    members.Listen(now);
    int looks = 0;
    while (members.Expire().empty()) {
      REQUIRE(members.Listen(now += kLease * apart) == absl::ZeroDuration());
      REQUIRE(++looks < 10);
    }
    REQUIRE(looks == Membership::kLooks + 1);
  }
}

TEST_CASE("after a restart nobody lapses for one full lease", "[scheduler]") {
  Membership members(kLease);
  uint64_t next = 1;
  REQUIRE(members.Report(Report("a", 1), kStart, next).ok());
  Membership restarted(kLease);
  const absl::Time later = kStart + kLease * 100;
  restarted.Restore(members.Find("a")->record, later);
  REQUIRE(Listen(restarted, later, later + kLease).empty());
  const absl::Time end = later + kLease;
  REQUIRE(Listen(restarted, end, end + absl::Milliseconds(1)).size() == 1);
}

TEST_CASE("who had lapsed stays so over a restart or a gap, and its silence goes on",
          "[scheduler]") {
  Membership members(kLease);
  uint64_t next = 1;
  REQUIRE(members.Report(Report("a", 1), kStart, next).ok());
  REQUIRE(Listen(members, kStart, kStart + kLease * 3.5).size() == 1);
  absl::Time now = kStart + kLease * 3.5;
  const bool restart = GENERATE(true, false);
  INFO(restart);
  if (restart) {
    now += kLease * 100;
    Membership restarted(kLease);
    restarted.Restore(members.Find("a")->record, now);
    members = restarted;
  } else {
    REQUIRE(members.Listen(now += kLease * 100) > kLease);
  }
  CHECK_FALSE(members.Find("a")->alive);
  CHECK(members.Find("a")->last_seen == kStart);
  CHECK(members.Find("a")->silence <= absl::ZeroDuration());
  // It has time to return, as after every restart, and is not told as lapsed again.
  REQUIRE(Listen(members, now, now + kLease).empty());
  CHECK(members.Find("a")->silence <= kLease);
  REQUIRE(Listen(members, now + kLease, now + kLease * 1.2).empty());
  CHECK(members.Find("a")->silence > kLease * 4);
  CHECK(members.Find("a")->silence < kLease * 5);
  CHECK(members.Find("a")->record.silent_ms() == absl::ToInt64Milliseconds(kLease * 4));
  now += kLease * 1.2;
  SECTION("once heard of, it is silent from then on") {
    REQUIRE(members.Report(Report("a", 1), now, next).ok());
    CHECK(members.Find("a")->record.silent_since_unix_ms() == 0);
    CHECK(members.Find("a")->silence == absl::ZeroDuration());
  }
  SECTION("where records are of an older copy, it counts as alive") {
    members.ForgetSilences(now);
    CHECK(members.Find("a")->alive);
    REQUIRE(Listen(members, now, now + kLease).empty());
    REQUIRE(Listen(members, now + kLease, now + kLease * 1.2).size() == 1);
    CHECK(members.Find("a")->silence < kLease * 2);
  }
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
  REQUIRE(Listen(restarted, kStart, heard).empty());
  REQUIRE(restarted.Report(Report("a", 1), heard, next).ok());
  // From then on its lease counts.
  REQUIRE(Listen(restarted, heard, heard + lease).empty());
  REQUIRE(Listen(restarted, heard + lease, heard + lease + absl::Milliseconds(1)).size() == 1);
  // Who does not come is not waited for any longer.
  Membership again(lease);
  again.Restore(members.Find("a")->record, kStart);
  const absl::Time late = kStart + Membership::kReturnTime;
  REQUIRE(Listen(again, kStart, late).empty());
  REQUIRE(Listen(again, late, late + absl::Milliseconds(1)) == std::vector<std::string>{"a"});
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

#include "scheduler/job/recovery_coordinator.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/match.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"

namespace strata::scheduler {
namespace {

constexpr absl::Duration kLease = absl::Seconds(10);

TEST_CASE("a server is judged by what it can have lost", "[scheduler]") {
  ServerFacts f{.alive = true, .opened = true, .same_process = true};
  REQUIRE(JudgeServer(f, kLease) == ServerVerdict::kFine);
  f.same_process = false;  // restarted: its log brings it back
  REQUIRE(JudgeServer(f, kLease) == ServerVerdict::kWait);
  f.keeps_nothing = true;
  REQUIRE(JudgeServer(f, kLease) == ServerVerdict::kRollBack);
  f.opened = false;  // nothing was there to lose
  REQUIRE(JudgeServer(f, kLease) == ServerVerdict::kWait);
}

TEST_CASE("of damaged checkpoints the latest are remembered, each once", "[scheduler]") {
  google::protobuf::RepeatedPtrField<std::string> aside;
  for (int i = 0; i < 3 * kMaxSetAside; ++i) AddSetAside("/c/" + std::to_string(i), aside);
  REQUIRE(aside.size() == kMaxSetAside);
  CHECK(aside[0] == "/c/" + std::to_string(2 * kMaxSetAside));
  AddSetAside(aside[0], aside);
  CHECK(aside.size() == kMaxSetAside);
  const std::string twice = "/c/" + std::to_string(2 * kMaxSetAside);
  CHECK(std::count(aside.begin(), aside.end(), twice) == 1);
  CHECK(aside[kMaxSetAside - 1] == twice);
}

TEST_CASE("a silent server is replaced only when waiting is no use, and only if one is there",
          "[scheduler]") {
  ServerFacts f{
      .alive = false, .silent = kLease + absl::Seconds(1), .opened = true, .replaceable = true};
  REQUIRE(JudgeServer(f, kLease) == ServerVerdict::kWait);  // its disk holds its shards
  f.silent = kLease * (1 + kReturnLeases);
  REQUIRE(JudgeServer(f, kLease) == ServerVerdict::kWait);
  f.silent += absl::Milliseconds(1);
  REQUIRE(JudgeServer(f, kLease) == ServerVerdict::kReplace);
  f.replaceable = false;
  REQUIRE(JudgeServer(f, kLease) == ServerVerdict::kWait);
  f = {.alive = false,
       .silent = kLease + absl::Seconds(1),
       .opened = true,
       .keeps_nothing = true,
       .replaceable = true};
  REQUIRE(JudgeServer(f, kLease) == ServerVerdict::kReplace);
  f = {.alive = false, .silent = kLease, .opened = false, .replaceable = true};
  REQUIRE(JudgeServer(f, kLease) == ServerVerdict::kWait);
}

TEST_CASE("a silent server is named with place, time and remedy", "[scheduler]") {
  const absl::Time seen =
      absl::FromCivil(absl::CivilSecond(2026, 3, 4, 5, 6, 7), absl::UTCTimeZone());
  ServerFacts f{.alive = false, .silent = kLease + absl::Seconds(1), .opened = true};
  CHECK(DescribeSilentServer("t0", "10.0.0.7:4711", seen, f, kLease) ==
        "server t0 at 10.0.0.7:4711 is silent since 05:06:07 UTC; the job waits for it. Start it "
        "again with the --name and --dir that it had, or start another server, which takes its "
        "place after 05:09:37 UTC from the last checkpoint");
  f.replaceable = true;
  f.keeps_nothing = true;
  CHECK(DescribeSilentServer("t0", "10.0.0.7:4711", seen, f, kLease) ==
        "server t0 at 10.0.0.7:4711 is silent since 05:06:07 UTC; the job waits for it. Start it "
        "again with the --name and --dir that it had; else another server takes its place after "
        "05:06:17 UTC from the last checkpoint");
  // The text is the same as long as nothing changes, so that it is told once.
  f.silent += absl::Seconds(5);
  CHECK(DescribeSilentServer("t0", "", absl::InfinitePast(), f, kLease) ==
        "server t0 is silent; the job waits for it. Start it again with the --name and --dir that "
        "it had; else another server takes its place from the last checkpoint");
}

TEST_CASE("a job file says how long a server is waited for", "[scheduler]") {
  ServerFacts f{.alive = false, .silent = absl::Minutes(2), .opened = true, .replaceable = true};
  f.patience = absl::Minutes(2);
  CHECK(JudgeServer(f, kLease) == ServerVerdict::kWait);
  f.silent += absl::Milliseconds(1);
  CHECK(JudgeServer(f, kLease) == ServerVerdict::kReplace);
  // Who has nothing to lose is not waited for.
  f.opened = false;
  f.silent = kLease + absl::Milliseconds(1);
  CHECK(JudgeServer(f, kLease) == ServerVerdict::kReplace);
}

TEST_CASE("copies that are all away are named, with until when they are waited for",
          "[scheduler]") {
  const absl::Time seen =
      absl::FromCivil(absl::CivilSecond(2026, 3, 4, 5, 6, 7), absl::UTCTimeZone());
  ServerFacts f{.opened = true, .replaceable = true};
  f.patience = absl::Seconds(60);
  f.from = "checkpoint /c/step-5";
  CHECK(
      DescribeAwayCopies("shards 0-3",
                         {{"s0", seen, ""}, {"s1", seen + absl::Seconds(2), ""}, {"s2", seen, "x"}},
                         f, kLease) ==
      "the last copies of shards 0-3 are away: server s0 is silent since 05:06:07 UTC, server s1 "
      "is silent since 05:06:09 UTC, server s2 has lost its copy (x); the job waits for one of "
      "those that are silent. Start it again with the --name and --dir that it had; else other "
      "servers take their place after 05:07:09 UTC from checkpoint /c/step-5");
}

// A promoted copy has a step in its log before it may count it as committed.
TEST_CASE("a step that is in the log and not committed yet is not lost", "[scheduler]") {
  RecoveryCoordinator c;
  c.Begin(2, 0);
  for (uint64_t step = 1; step <= 10; ++step) {
    CHECK(c.Clocks(0, step, step));
    CHECK(c.Clocks(1, step, step));
  }
  c.ProcessChanged(0);
  RecoveryCoordinator lost = c;
  CHECK(c.Clocks(0, 8, 8, 10));
  CHECK_FALSE(lost.Clocks(0, 8, 8, 8));
}

TEST_CASE("a checkpoint is set aside when two servers find it damaged", "[scheduler]") {
  // The first to say so is one reader.
  CHECK(JudgeRead({.another = true}) == ReadVerdict::kReadAgain);
  CHECK(JudgeRead({.others_read = true}) == ReadVerdict::kReadAgain);
  // The second is another.
  for (const bool read : {false, true}) {
    CHECK(JudgeRead({.doubted = true, .another = true, .others_read = read}) ==
          ReadVerdict::kSetAside);
  }
  // The same one, with others about: what they find decides.
  ReadFacts same = {.doubted = true, .same_reader = true, .another = true};
  CHECK(JudgeRead(same) == ReadVerdict::kWait);
  same.others_read = true;
  CHECK(JudgeRead(same) == ReadVerdict::kBadReader);
  // The same one, alone.
  same.another = false;
  CHECK(JudgeRead(same) == ReadVerdict::kSetAside);
}

TEST_CASE("what is wrong with checkpoints is told with what to do", "[scheduler]") {
  CHECK(absl::EndsWith(DescribeBadReader("/c", "s0: x", "waiting for room: s1 has 2.0 MiB free"),
                       "; no other can now: waiting for room: s1 has 2.0 MiB free"));
  CHECK(DescribeBadReader("/c/step-1", "s0: block 7 is damaged") ==
        "checkpoint /c/step-1 stays, since other servers read it; but s0: block 7 is damaged. Look "
        "at that server's machine and start the server again, or start another one, which takes "
        "its place; until then it tries again now and then");
  CHECK(DescribeNoCheckpoint({"/c/step-2", "/c/step-1"}, false) ==
        "no whole checkpoint is left to start from (damaged: /c/step-2, /c/step-1), and a job does "
        "not start anew unasked; put back a whole copy and submit the job again with --resume, or "
        "start anew with --overwrite");
  CHECK(DescribeNoCheckpoint({"/init"}, true) ==
        "no whole checkpoint is left to start from (damaged: /init), and a job does not start anew "
        "unasked; name another one in spec.model.initFrom, or put back a copy");
}

TEST_CASE("clocks of different moments are no proof of a loss", "[scheduler]") {
  RecoveryCoordinator r;
  r.Begin(2, 0);
  REQUIRE(r.Clocks(0, 5, 6));
  REQUIRE(r.Clocks(1, 90, 91));  // server 0 has not spoken for long
  REQUIRE(r.Clocks(0, 6, 6));    // sent before the other's report was received
  REQUIRE(r.Clocks(0, 90, 90));
  REQUIRE(r.min_clock() == 90);
  REQUIRE(r.max_clock() == 91);
  REQUIRE(r.Clocks(0, 7, 7));  // an old report that comes late
  REQUIRE(r.min_clock() == 90);
}

TEST_CASE("a server that stays behind has lost steps", "[scheduler]") {
  RecoveryCoordinator r;
  r.Begin(2, 0);
  REQUIRE(r.Clocks(1, 90, 90));
  REQUIRE(r.Clocks(0, 88, 88));
  REQUIRE(r.Clocks(0, 88, 88));
  REQUIRE_FALSE(r.Clocks(0, 88, 88));
}

TEST_CASE("a new process must have all that was known when it registered, but for one step",
          "[scheduler]") {
  for (uint64_t recovered : {90, 89, 88}) {
    RecoveryCoordinator r;
    r.Begin(2, 0);
    REQUIRE(r.Clocks(0, 90, 90));
    REQUIRE(r.Clocks(1, 89, 90));
    r.ProcessChanged(0);
    REQUIRE(r.Clocks(0, recovered, recovered) == (recovered >= 89));
  }
}

}  // namespace
}  // namespace strata::scheduler

// A scheduler that lost its records of a job makes it again of what servers noted: the job goes on
// with them, or from a checkpoint; and until it trains, nobody's copy is touched.
#include <catch2/catch.hpp>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/strata/control.pb.h"
#include "scheduler/cluster_state.h"
#include "tests/scheduler/adopted_cluster.h"

namespace strata::scheduler {
namespace {

TEST_CASE("an adopted job goes on with what its servers have", "[scheduler][adoption]") {
  AdoptedCluster cluster;
  REQUIRE(cluster.Adopt().ok());
  CHECK(cluster.Id() == 1);
  CHECK(cluster.state().OwnersOf(1) == std::set<std::string>{"adopter", "me"});
  const bool restarts = GENERATE(false, true);
  if (restarts) cluster.RestartScheduler();
  uint64_t first = 0;
  cluster.Until([&] {
    const bool over = cluster.State().phase() == OVER;
    if (!over) CHECK(cluster.Copies() == 2);  // at every moment
    if (first == 0 && cluster.State().phase() == TRAINING) first = cluster.Step(1);
    return over;
  });
  INFO(cluster.Said());
  CHECK(cluster.State().state() == SUCCEEDED);
  CHECK(cluster.State().final_step() == kSteps);
  CHECK(cluster.State().generation() == 1);
  CHECK(cluster.State().rollbacks() == 0);
  CHECK(cluster.Said("CheckpointDamaged").empty());
  CHECK(first >= 60);
  // Numbers of cuts that the lost records gave out are given to none.
  CHECK(cluster.cuts.back() > uint64_t{1} << 20);
  cluster.Until([&] { return cluster.Copies() == 0; });
}

TEST_CASE("an adopted job tells of damaged checkpoints, and what it goes on from instead",
          "[scheduler][adoption]") {
  AdoptedCluster cluster;
  cluster.damaged = "/c/lost/newer (it is cut off)";
  const bool servers = GENERATE(true, false);
  CAPTURE(servers);
  if (!servers) {
    cluster.Fail("s1");
    cluster.Silence();
    const auto own = std::exchange(cluster.own, {});
    const absl::Status refused = cluster.Adopt();
    INFO(refused);
    CHECK(absl::StrContains(refused.message(),
                            "of its own in /c/lost that is whole (" + cluster.damaged + ")"));
    cluster.own = own;
  }
  const std::string told = absl::StrCat(
      cluster.damaged, servers ? "; the job goes on with what its servers kept"
                               : absl::StrCat("; the job goes on from ", cluster.own[0].folder()));
  REQUIRE(cluster.Adopt().ok());
  CHECK(cluster.Said("CheckpointDamaged") == std::vector<std::string>{told});
  // A later look says so once, and what is new beside.
  cluster.Held(7);
  CHECK(cluster.Said("CheckpointDamaged") == std::vector<std::string>{told});
  cluster.damaged += ", /c/lost/newest (it is, too)";
  cluster.Held(8);
  CHECK(cluster.Said("CheckpointDamaged").size() == 2);
}

TEST_CASE("an adopted job ends where its input is another, and its copies stay",
          "[scheduler][adoption]") {
  AdoptedCluster cluster;
  cluster.worker.index_lines += 1;
  REQUIRE(cluster.Adopt().ok());
  cluster.Until([&] { return cluster.State().phase() == OVER; });
  CHECK(cluster.State().state() == FAILED);
  CHECK(absl::StrContains(cluster.Said(), "InputChanged"));
  for (int i = 0; i < 3; ++i) cluster.Round();
  CHECK(cluster.Copies() == 2);
  CHECK(cluster.Quarantined() == 2);
  cluster.worker.index_lines -= 1;
  cluster.RestartScheduler();
  cluster.Until([&] { return cluster.Quarantined() == 2; });
  REQUIRE(cluster.Adopt().ok());
  CHECK(cluster.Id() != 1);  // the failed one has its number
}

TEST_CASE("an adopted job that had resumed with more files reads the new ones alone",
          "[scheduler][adoption][daily]") {
  AdoptedCluster cluster(/*daily=*/true);
  SECTION("as the checkpoint says") {
    REQUIRE(cluster.Adopt().ok());
    if (GENERATE(false, true)) cluster.RestartScheduler();
    cluster.Until([&] { return cluster.State().phase() == OVER; });
    CHECK(cluster.State().state() == SUCCEEDED);
    CHECK(cluster.State().final_step() == kSteps);
  }
  SECTION("where nothing says so it ends, and stays kept") {
    cluster.data.mutable_end()->set_tasks(8);  // of another run
    REQUIRE(cluster.Adopt().ok());
    cluster.Until([&] { return cluster.State().phase() == OVER; });
    CHECK(absl::StrContains(cluster.Said(), "or the checkpoint is gone that said which files it"));
    CHECK(cluster.Copies() == 2);
  }
}

TEST_CASE("an adopted job that had started from another's checkpoint needs it no more",
          "[scheduler][adoption]") {
  AdoptedCluster cluster(/*daily=*/false, "/c/yesterday");
  cluster.own.clear();
  cluster.disk.erase("/c/yesterday");
  REQUIRE(cluster.Adopt().ok());
  cluster.Until([&] { return cluster.State().phase() == OVER; });
  INFO(cluster.Said());
  CHECK(cluster.State().state() == SUCCEEDED);
}

TEST_CASE("while an adopted job waits its copies are kept, also where it is cancelled",
          "[scheduler][adoption]") {
  AdoptedCluster cluster;
  cluster.worker.Kill();
  cluster.Silence();
  REQUIRE(cluster.Adopt().ok());
  for (int i = 0; i < 3; ++i) cluster.Round();
  CHECK(cluster.Quarantined() == 2);
  CHECK(cluster.Copies() == 2);
  const absl::Status again = cluster.Adopt();
  CHECK(absl::IsAlreadyExists(again));
  CHECK(absl::StrContains(again.message(), "job 1"));
  SettleQuarantineRequest purge;
  purge.set_action(SettleQuarantineRequest::PURGE);
  purge.set_job_uid(kJob.text());
  purge.set_node("s0");
  CHECK(
      absl::IsFailedPrecondition(cluster.state().SettleQuarantine(purge, cluster.now()).status()));
  REQUIRE(cluster.state().Cancel(1, cluster.now()).ok());
  for (int i = 0; i < 3; ++i) cluster.Round();
  CHECK(cluster.Copies() == 2);
  REQUIRE(cluster.state().SettleQuarantine(purge, cluster.now()).ok());
  cluster.Until([&] { return cluster.Copies() == 1; });
}

TEST_CASE("an adopted job goes on from its checkpoint where a server is missing",
          "[scheduler][adoption]") {
  AdoptedCluster cluster;
  cluster.Fail("s1");
  cluster.Silence();
  const auto own = std::exchange(cluster.own, {});
  CHECK(absl::IsFailedPrecondition(cluster.Adopt()));
  CHECK(cluster.Id() == 0);
  cluster.own = own;
  REQUIRE(cluster.Adopt().ok());
  cluster.Until([&] {
    return absl::StrContains(cluster.Said(), "WaitingForServers");  // it needs two
  });
  CHECK(cluster.State().generation() > 1000);
  CHECK(cluster.State().cuts().complete(0).folder() == own[0].folder());
}

TEST_CASE("an adopted job that waits for a server says what its user can do",
          "[scheduler][adoption]") {
  AdoptedCluster cluster;
  cluster.worker.Kill();  // nobody reads the input yet
  cluster.Silence();
  REQUIRE(cluster.Adopt().ok());
  cluster.Fail("s1");
  cluster.Silence();
  cluster.worker.Start(9);
  cluster.Until([&] { return absl::StrContains(cluster.Said(), "WaitingForServers"); });
  const std::string said = cluster.Said();
  INFO(said);
  for (const std::string& part :
       {std::string("goes on with s0, s1 alone"), std::string("with the --name and --dir that"),
        std::string("cancel the job and adopt it again"),
        "from checkpoint " + cluster.own[0].folder()}) {
    CAPTURE(part);
    CHECK(absl::StrContains(said, part));
  }
  // As it says.
  REQUIRE(cluster.state().Cancel(cluster.Id(), cluster.now()).ok());
  cluster.Round();
  REQUIRE(cluster.Adopt().ok());
}

TEST_CASE("an adopted job that waits for its lock begins from what is there when it has it",
          "[scheduler][adoption][lock]") {
  AdoptedCluster cluster;
  cluster.Fail("s1");
  cluster.Silence();
  const bool restarts = GENERATE(false, true), gone = GENERATE(false, true);
  CAPTURE(restarts, gone);
  REQUIRE(cluster.Adopt(/*lock=*/0).ok());
  for (int i = 0; i < 3; ++i) cluster.Round();
  CHECK(cluster.State().phase() == WAITING);
  if (restarts) {
    cluster.RestartScheduler();
    cluster.state().AwaitLocks();
  }
  const auto look = cluster.state().LooksAgain(cluster.Id(), 7);
  REQUIRE(look.has_value());
  CHECK(look->looks == JobMachine::Looks::kForOwn);
  CHECK(look->identity == JobIdentity{kCluster, kJob});
  // Another one was put there meanwhile.
  CheckpointRecord newer = cluster.own[0];
  newer.set_folder("/c/lost/newer");
  newer.set_step(newer.step() + 1);
  cluster.own = gone ? std::vector<CheckpointRecord>() : std::vector<CheckpointRecord>{newer};
  cluster.Held(7);
  CHECK_FALSE(cluster.state().LooksAgain(cluster.Id(), 7).has_value());
  if (gone) {
    CHECK(cluster.State().state() == FAILED);
    CHECK(absl::StrContains(cluster.Said(), "AdoptionUndone"));
    CHECK(cluster.Copies() == 1);
    return;
  }
  CHECK(cluster.State().cuts().complete_size() == 1);
  CHECK(cluster.State().cuts().complete(0).folder() == newer.folder());
  // And so it is under another number, as long as no server was told what to begin from.
  CHECK(cluster.state().LooksAgain(cluster.Id(), 8).has_value());
}

TEST_CASE("a checkpoint of another version ends an adopted job that needs one, and no other",
          "[scheduler][adoption][lock]") {
  AdoptedCluster cluster;
  const bool needs_one = GENERATE(false, true);
  CAPTURE(needs_one);
  if (needs_one) {
    cluster.Fail("s1");
    cluster.Silence();
  }
  const bool late = GENERATE(false, true);  // it came after the first look
  const absl::Status other_format =
      absl::FailedPreconditionError("/c/lost/newer has format 5; move it away");
  if (!late) {
    cluster.other_format = other_format;
    cluster.damaged = "/c/lost/newer (format 5)";
  }
  const absl::Status adopted = cluster.Adopt(/*lock=*/0);
  INFO(adopted);
  if (needs_one && !late) {
    CHECK(absl::IsFailedPrecondition(adopted));
    CHECK(absl::StrContains(adopted.message(), other_format.message()));
    CHECK(cluster.Copies() == 1);
    return;
  }
  REQUIRE(adopted.ok());
  cluster.other_format = other_format;
  cluster.damaged = "/c/lost/newer (format 5)";
  cluster.Held(7);
  if (needs_one) {
    CHECK(cluster.State().state() == FAILED);
    CHECK(cluster.Said("CheckpointDoesNotFit") ==
          std::vector<std::string>{std::string(other_format.message())});
    CHECK(cluster.Copies() == 1);
    return;
  }
  cluster.Until([&] { return cluster.State().state() == SUCCEEDED; });
  CHECK(cluster.State().rollbacks() == 0);
  CHECK(cluster.Said("CheckpointDamaged") ==
        std::vector<std::string>{
            "/c/lost/newer (format 5); the job goes on with what its servers kept"});
}

TEST_CASE("an adopted job that may not go on from what is there ends, and its copies stay",
          "[scheduler][adoption][lock]") {
  AdoptedCluster cluster;
  REQUIRE(cluster.Adopt(/*lock=*/0).ok());
  const uint64_t id = cluster.Id();
  cluster.state().FoundAgain(
      id, absl::FailedPreconditionError("/c/lost/newer has format 5; move it away"), cluster.now());
  CHECK(cluster.State().state() == FAILED);
  CHECK(cluster.Said("CheckpointDoesNotFit") ==
        std::vector<std::string>{"/c/lost/newer has format 5; move it away"});
  for (int i = 0; i < 3; ++i) cluster.Round();
  CHECK(cluster.Copies() == 2);
  // It is over: what is found now changes nothing.
  cluster.state().FoundAgain(id, FoundInDirectory{.lock = 9, .complete = cluster.own},
                             cluster.now());
  cluster.state().FoundAgain(id, absl::FailedPreconditionError("again"), cluster.now());
  CHECK(cluster.Said("CheckpointDoesNotFit").size() == 1);
  REQUIRE(cluster.Adopt().ok());
  CHECK(cluster.Id() != id);
}

TEST_CASE("a name that a job of the cluster has is not taken by an adopted one",
          "[scheduler][adoption]") {
  AdoptedCluster cluster;
  const auto id = cluster.state().Submit(cluster.Job("lost", {0, 9}), cluster.now());
  REQUIRE(id.ok());
  const absl::Status refused = cluster.Adopt();
  CHECK(absl::IsAlreadyExists(refused));
  CHECK(absl::StrContains(refused.message(), absl::StrCat("job ", *id)));
  REQUIRE(cluster.state().Cancel(*id, cluster.now()).ok());
  CHECK(cluster.Adopt().ok());
}

}  // namespace
}  // namespace strata::scheduler

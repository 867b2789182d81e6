// What cuts leave in a checkpoint directory, and who may still write there when a job is over.
#include <catch2/catch.hpp>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/core/ids.h"
#include "scheduler/cluster_state.h"
#include "tests/scheduler/job/cuts_cluster.h"

namespace strata::scheduler {
namespace {

constexpr absl::Duration kLease = CutsCluster::kLease;

// A look into a folder costs a manifest: a job would pay for all its checkpoints with each.
TEST_CASE("a checkpoint that is complete has nobody look into the earlier ones again",
          "[scheduler][cuts]") {
  CutsCluster cluster;
  for (const int complete : {1, 2}) {
    cluster.WantCheckpoint();
    cluster.Until([&] { return cluster.job().cuts().complete_size() == complete; });
    CHECK(cluster.leftovers.back().over.folders ==
          std::set<std::string>{cluster.job().cuts().complete(complete - 1).folder()});
  }
  CheckEndsWhole(cluster);
}

// Its servers' files are somebody's who holds the directory's lock: looked for until that was done.
TEST_CASE("what cuts left is looked for when they are given up, and when a job is over",
          "[scheduler][cuts]") {
  CutsCluster cluster({.servers = 2});
  cluster.leftovers.clear();
  cluster.BeginCut();
  CHECK(cluster.leftovers.empty());
  cluster.RestartWorker(0);
  REQUIRE(cluster.leftovers.size() == 1);
  CHECK(cluster.leftovers[0].directory == "/c");
  CHECK(cluster.leftovers[0].over.Has(Generation(1), 1));
  CHECK_FALSE(cluster.leftovers[0].over.Has(Generation(1), 2));
  CHECK_FALSE(cluster.leftovers[0].over.Has(Generation(2), 1));
  cluster.Until([&] { return cluster.cut() == 2; });
  const std::string given_up = *cluster.leftovers[0].over.folders.begin();
  cluster.leftovers.clear();
  cluster.Until([&] { return cluster.job().cuts().complete_size() == 1; });
  REQUIRE(cluster.leftovers.size() == 1);  // of a killed server, say
  CHECK(cluster.leftovers[0].over.Has(Generation(1), 2));
  CHECK(cluster.leftovers[0].over.folders.contains(given_up));
}

// What a server finishes until it has closed the job, nobody hears of.
TEST_CASE("the last look for leftovers comes when the servers have closed the job",
          "[scheduler][cuts]") {
  CutsCluster cluster({.servers = 2});
  cluster.keep_leftovers = true;
  cluster.BeginCut();
  cluster.RestartWorker(0);
  cluster.Cancel();
  const auto looks = [&] { return cluster.leftovers.size(); };
  REQUIRE(looks() == 1);
  const uint64_t before = cluster.leftovers[0].number;
  CHECK(cluster.uses_checkpoints());
  cluster.LeftoversRemoved(before);  // one from before the end
  CHECK(cluster.uses_checkpoints());
  const bool away = GENERATE(false, true);
  const bool removes = GENERATE(false, true);
  CAPTURE(away, removes);
  if (away && removes) return;
  if (removes) {  // what it keeps takes long to remove; it writes no more
    cluster.SayKept("s0", false);
    cluster.SayKept("s1", true);
    CHECK(looks() == 1);
    cluster.SayKept("s1", false);
  } else if (away) {
    cluster.Pass(kLease / 2 - absl::Milliseconds(10));
    CHECK(looks() == 1);
    cluster.Pass(absl::Milliseconds(20));
  } else {
    for (int i = 0; i < 4 && looks() == 1; ++i) cluster.SyncServers();
  }
  REQUIRE(looks() == 2);
  CHECK(cluster.leftovers[1].over.folders.empty());  // into all
  CHECK(cluster.uses_checkpoints());                 // so that its lock is kept
  // A look that fails is tried again; where that cannot help it is told.
  cluster.LeftoversRemoved(cluster.leftovers[1].number, absl::UnavailableError("EIO"));
  CHECK(looks() == 2);
  cluster.Pass(absl::Seconds(1));
  REQUIRE(looks() == 3);
  CHECK(cluster.uses_checkpoints());
  const auto [last, mends] = GENERATE(table<absl::StatusCode, bool>(
      {{absl::StatusCode::kPermissionDenied, false},
       {absl::StatusCode::kOk, true},
       {absl::StatusCode::kDataLoss, true},  // of a manifest: nobody cleans up there
       {absl::StatusCode::kUnimplemented, true}}));
  cluster.LeftoversRemoved(cluster.leftovers[2].number, absl::Status(last, "it is so"));
  CHECK_FALSE(cluster.uses_checkpoints());
  CHECK((cluster.status().conditions().rbegin()->reason() == "LeftoversStay") != mends);
  const std::vector<LockedJob> locked = cluster.locked();
  CHECK(locked.size() == (away ? 1 : 0));  // its servers may write on
  if (away) CHECK(locked[0].leaves_writers);
}

// The process that had the name may live, and write on: nobody hears of it.
TEST_CASE("who takes a server's name without the job's files there leaves a writer behind",
          "[scheduler][cuts]") {
  CutsCluster cluster({.servers = 2});
  enum class Comes : uint8_t {
    kAgain,
    kInAnotherContainer,
    kBare,
    kFromAnotherHost,
    kFromNowhere,
    kAsWorker
  };
  const Comes comes = GENERATE(Comes::kAgain, Comes::kInAnotherContainer, Comes::kBare,
                               Comes::kFromAnotherHost, Comes::kFromNowhere, Comes::kAsWorker);
  const bool after_the_end = GENERATE(false, true);
  CAPTURE(comes, after_the_end);
  const bool same = comes == Comes::kAgain || comes == Comes::kInAnotherContainer;
  if (after_the_end) cluster.Cancel();
  if (comes == Comes::kAsWorker) {
    cluster.WorkerTakesName("s0");
  } else {
    cluster.RestartServer();
    if (comes == Comes::kInAnotherContainer) cluster.server("s0").LimitBy("host/another");
    if (comes == Comes::kBare) cluster.server("s0").Wipe();
    if (comes == Comes::kFromAnotherHost) cluster.server("s0").MoveTo("another/1");
    if (comes == Comes::kFromNowhere) cluster.server("s0").MoveTo("");
  }
  cluster.SyncAll();
  if (!after_the_end) cluster.Cancel();
  for (int i = 0; i < 6; ++i) {
    cluster.SyncAll();
    cluster.Pass(absl::Milliseconds(100));
  }
  REQUIRE_FALSE(cluster.uses_checkpoints());
  const std::vector<LockedJob> locked = cluster.locked();
  REQUIRE(locked.size() == (same ? 0 : 1));
  if (!same) CHECK(locked[0].leaves_writers);
  // It is not remembered for that for ever.
  cluster.EndOthers(ClusterState::kMaxFinishedJobs + 1);
  CHECK_FALSE(cluster.remembers(1));
}

// Its own word was heard, and it restarted before the scheduler had acted on it.
TEST_CASE("a server that has said that it writes no more leaves no writer behind",
          "[scheduler][cuts]") {
  CutsCluster cluster;
  cluster.Cancel();
  cluster.SayKept("s0", false);
  cluster.RestartServer();
  cluster.server("s0").Wipe();
  for (int i = 0; i < 4; ++i) cluster.SyncAll();
  CHECK(cluster.locked().empty());
}

TEST_CASE("a job that is over is not forgotten before its lock is given back",
          "[scheduler][cuts]") {
  CutsCluster cluster({.servers = 2});
  cluster.Cancel();
  cluster.EndOthers(ClusterState::kMaxFinishedJobs + 1);
  const std::vector<LockedJob> locked = cluster.locked();
  REQUIRE(locked.size() == 1);
  CHECK(locked[0].job == 1);
  for (int i = 0; i < 6; ++i) {
    cluster.SyncServers();
    cluster.Pass(absl::Milliseconds(100));
  }
  REQUIRE(cluster.locked().empty());
  REQUIRE(cluster.remembers(1));
  cluster.EndOthers(1);
  CHECK_FALSE(cluster.remembers(1));
}

// What it said before its scheduler forgot that it was to close the job does not count.
TEST_CASE("a server that has the job open again may write again", "[scheduler][cuts]") {
  CutsCluster cluster({.servers = 2});
  cluster.keep_leftovers = true;
  cluster.Cancel();
  cluster.SayKept("s0", false);
  cluster.SayKept("s1", false);
  REQUIRE(cluster.leftovers.size() == 1);
  REQUIRE(cluster.uses_checkpoints());
  cluster.SayKept("s1", true);
  cluster.LeftoversRemoved(cluster.leftovers[0].number);
  REQUIRE_FALSE(cluster.uses_checkpoints());
  const std::vector<LockedJob> locked = cluster.locked();
  REQUIRE(locked.size() == 1);
  CHECK(locked[0].leaves_writers);
}

TEST_CASE("a manifest that is being written when its job ends is counted and kept as others are",
          "[scheduler][cuts]") {
  CutsCluster cluster;
  for (const int complete : {1, 2}) {
    cluster.WantCheckpoint();
    cluster.Until([&] { return cluster.job().cuts().complete_size() == complete; });
  }
  const std::string first = cluster.job().cuts().complete(0).folder();
  cluster.hold_manifests = true;
  cluster.WantCheckpoint();
  cluster.Until([&] { return !cluster.held.empty(); });
  cluster.Cancel();
  for (int i = 0; i < 4; ++i) cluster.SyncServers();
  REQUIRE(cluster.uses_checkpoints());
  const bool fails = GENERATE(false, true);
  cluster.WriteHeld(fails ? absl::UnavailableError("EIO") : absl::OkStatus());
  CHECK(cluster.uses_checkpoints() != fails);  // what is no longer kept is to be removed
  const CutBook book = cluster.job().cuts();
  CHECK(book.pending_size() == 0);
  CHECK(book.complete_size() == 2);  // keep: 2
  const std::string newest = book.complete(1).folder();
  CHECK(cluster.job().final_checkpoint() == newest);
  CHECK((newest == cluster.last_held) != fails);
  CHECK(cluster.job().removing_size() == (fails ? 0 : 1));
  if (!fails) CHECK(cluster.job().removing(0).path() == first);
}

}  // namespace
}  // namespace strata::scheduler

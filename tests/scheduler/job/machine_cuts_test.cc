// Cuts of an asynchronous job: when one begins, when it is given up, and what the job has counted
// by then, also after a roll-back.
#include <catch2/catch.hpp>
#include <cstdint>

#include "proto/strata/job.pb.h"
#include "scheduler/cluster_state.h"
#include "tests/scheduler/job/cuts_cluster.h"

namespace strata::scheduler {
namespace {

constexpr uint64_t kWindows = CutsCluster::kWindows;
constexpr uint64_t kAll = CutsCluster::kAll;

// A task that is closed between the beginning of a cut and its end is open in the checkpoint.
TEST_CASE("lines are counted once, whatever a roll-back has done again", "[scheduler][cuts]") {
  const uint64_t bad_every = GENERATE(0, 1, 2, 3);
  INFO(bad_every);
  const uint64_t bad = bad_every == 0 ? 0 : kAll / bad_every;
  CutsCluster cluster({.memory = true, .bad_every = bad_every});
  const auto counted = [&] {
    const JobStatus status = cluster.status();
    return status.examples() + status.bad_lines();
  };
  cluster.Until([&] { return counted() >= 4; });  // both workers are at work
  cluster.WantCheckpoint();
  cluster.FinishTask(0);
  cluster.Until([&] { return cluster.job().cuts().complete_size() == 1; });
  CHECK(cluster.closed_tasks() > 0);
  CHECK(cluster.job().cuts().complete(0).closed_tasks_size() == 0);
  CHECK(cluster.job().cuts().complete(0).bad_lines() == 0);
  CHECK(cluster.job().cuts().complete(0).examples() == 0);
  CHECK(counted() >= kWindows);
  cluster.RestartServer();
  cluster.Until([&] { return cluster.job().generation() == 2; });
  CHECK(counted() == 0);
  CheckEndsWhole(cluster);
  CHECK(cluster.job().rollbacks() == 1);
  CHECK(cluster.status().bad_lines() == bad);
  CHECK(cluster.status().examples() == kAll - bad);
}

// Servers drop what it had pushed; nobody drops what it had counted.
TEST_CASE("lines that a lost worker had read are counted once", "[scheduler][cuts]") {
  CutsCluster cluster({.bad_every = 2});
  cluster.Until([&] { return cluster.status().bad_lines() >= 5; });
  cluster.LoseWorkers();
  CHECK(cluster.status().bad_lines() == 0);
  cluster.StartWorkers();
  CheckEndsWhole(cluster);
  CHECK(cluster.status().bad_lines() == kAll / 2);
  CHECK(cluster.status().examples() == kAll / 2);
}

// Server 0 waits for the second lane's mark, and holds what the first one pushed after its own.
TEST_CASE("a cut that one server fails holds nobody at the other", "[scheduler][cuts]") {
  CutsCluster cluster({.servers = 2});
  cluster.server("s1").FailCuts(1);
  cluster.BeginCut();
  CHECK(cluster.given_up() == 0);
  cluster.SyncServers();  // server 1 says that it failed
  CHECK(cluster.cut() == 0);
  CHECK(cluster.given_up() == 1);
  CheckEndsWhole(cluster);
}

TEST_CASE("a cut that a server had no patience for is begun anew", "[scheduler][cuts]") {
  CutsCluster cluster({.servers = 2});
  cluster.BeginCut();
  cluster.server("s0").LosePatience();
  cluster.SyncServers();
  CHECK(cluster.given_up() == 1);
  cluster.Until([&] { return cluster.job().cuts().complete_size() == 1; });
  CHECK(cluster.job().cuts().complete(0).cut() == 2);
  CheckEndsWhole(cluster);
}

// Its marks are gone: the cut would never be complete.
TEST_CASE("a cut whose server began again is given up", "[scheduler][cuts]") {
  CutsCluster cluster({.servers = 2});
  cluster.BeginCut();
  cluster.RestartServer();
  cluster.Until([&] { return cluster.given_up() >= 1; });
  cluster.Until([&] { return cluster.job().cuts().complete_size() == 1; });
  CHECK(cluster.job().cuts().complete(0).cut() > 1);
  CheckEndsWhole(cluster);
}

// The lane's next host does other windows after the same mark.
TEST_CASE("a cut whose lane has got another host is given up", "[scheduler][cuts]") {
  CutsCluster cluster({.servers = 2});
  cluster.BeginCut();
  REQUIRE(cluster.cut() == 1);
  cluster.RestartWorker(0);
  CHECK(cluster.cut() != 1);  // in the same event
  CHECK(cluster.given_up() == 1);
  CheckEndsWhole(cluster);
  const JobStateRecord end = cluster.job();
  for (const CheckpointRecord& c : end.cuts().complete()) CHECK(c.cut() != 1);
}

// A server that hears nothing for a while meets no lane that was told of a cut it cannot know of:
// it would have to keep marks and pushes of whatever number anybody names.
TEST_CASE("a cut begins when every server has said that those before it are over",
          "[scheduler][cuts]") {
  CutsCluster cluster({.servers = 2});
  cluster.BeginCut();
  REQUIRE(cluster.cut() == 1);
  for (int i = 0; i < 3; ++i) {
    cluster.RestartWorker(0);  // its lane's cut is given up, and still wanted
    CHECK(cluster.cut() == 0);
    CHECK(cluster.given_up() == 1);
    for (int k = 0; k < 3; ++k) cluster.SyncServer("s0");
    CHECK(cluster.cut() == 0);  // server 1 has not spoken
  }
  cluster.SyncServer("s1");  // is told
  CHECK(cluster.cut() == 0);
  cluster.SyncServer("s1");  // says so
  CHECK(cluster.cut() == 2);
  CheckEndsWhole(cluster);
  CHECK(cluster.server("s0").impossible_cuts() == 0);
  CHECK(cluster.server("s1").impossible_cuts() == 0);
}

}  // namespace
}  // namespace strata::scheduler

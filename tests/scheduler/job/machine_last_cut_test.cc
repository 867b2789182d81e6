// Which checkpoint an asynchronous job ends with: the one that was taken when all was trained.
#include <catch2/catch.hpp>
#include <cstdint>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "proto/strata/job.pb.h"
#include "tests/scheduler/job/cuts_cluster.h"

namespace strata::scheduler {
namespace {

TEST_CASE("a job ends with a checkpoint of all its windows", "[scheduler][cuts]") {
  CutsCluster cluster;
  cluster.TakeCheckpoint();
  CheckEndsWhole(cluster);
}

TEST_CASE("an earlier checkpoint does not stand in for the last one that cannot be written",
          "[scheduler][cuts]") {
  CutsCluster cluster;
  cluster.TakeCheckpoint();
  cluster.manifests_to_fail = 1;
  cluster.Until([&] { return cluster.manifests_to_fail == 0; });
  CHECK(cluster.job().phase() == CUTTING);
  cluster.Pass(absl::Seconds(1));
  CheckEndsWhole(cluster);
}

// A disk that is full, until there is room.
TEST_CASE("a job that is trained waits for its last checkpoint, and says why and where",
          "[scheduler][cuts]") {
  CutsCluster cluster({.servers = 2});
  cluster.Until([&] { return cluster.job().phase() == CUTTING; });
  const bool manifest = GENERATE(false, true);
  constexpr int kTimes = 4;
  if (manifest) {
    cluster.manifests_to_fail = kTimes;
  } else {
    cluster.server("s1").FailCuts(kTimes, absl::StatusCode::kResourceExhausted);
  }
  std::set<uint64_t> tried;
  cluster.Until([&] {
    if (cluster.cut() != 0) tried.insert(cluster.cut());
    return manifest ? cluster.manifests_to_fail == 0 : !cluster.server("s1").fails_cuts();
  });
  CHECK(cluster.job().phase() == CUTTING);
  cluster.Until([&] { return cluster.cut() == 0; });
  const JobCondition said = *cluster.status().conditions().rbegin();
  INFO(said.DebugString());
  CHECK(said.reason() == "CheckpointFailed");
  CHECK(absl::StrContains(said.message(), "spec.checkpoint.directory: /c/step-"));
  CHECK(absl::StrContains(said.message(),
                          manifest ? ": scheduler: disk full; " : ": s1: s1 has no file; "));
  CHECK(absl::StrContains(said.message(),
                          "; the job waits for this checkpoint, and tries again in "));
  CheckEndsWhole(cluster);
  CHECK(tried.size() == kTimes);  // marks of two tries never meet under one number
}

TEST_CASE("a cancel ends the wait for the last checkpoint", "[scheduler][cuts]") {
  CutsCluster cluster;
  cluster.Until([&] { return cluster.job().phase() == CUTTING; });
  cluster.manifests_to_fail = 1;
  cluster.Until([&] { return cluster.manifests_to_fail == 0 && cluster.cut() == 0; });
  cluster.Cancel();
  CHECK(cluster.job().phase() == OVER);
  CHECK(cluster.job().state() == CANCELLED);
}

TEST_CASE("a job whose last checkpoint no try can write fails, and says why", "[scheduler][cuts]") {
  CutsCluster cluster;
  cluster.Until([&] { return cluster.job().phase() == CUTTING; });
  cluster.server("s0").FailCuts(100, absl::StatusCode::kPermissionDenied);
  cluster.Until([&] { return cluster.job().phase() == OVER; });
  CHECK(cluster.job().state() == FAILED);
  const JobCondition said = *cluster.status().conditions().rbegin();
  INFO(said.DebugString());
  CHECK(said.reason() == "CheckpointFailed");
  CHECK(absl::EndsWith(said.message(), ": s0: s0 has no file"));
  CHECK(cluster.job().cuts().next_cut() == 4);
}

TEST_CASE("an earlier checkpoint does not stand in for the last one when no worker is left",
          "[scheduler][cuts]") {
  CutsCluster cluster;
  cluster.TakeCheckpoint();
  cluster.Until([&] { return cluster.job().phase() == CUTTING; });
  REQUIRE(cluster.job().cuts().pending_size() == 1);
  cluster.LoseWorkers();
  CHECK(cluster.job().phase() == CUTTING);
  cluster.StartWorkers();
  CheckEndsWhole(cluster);
}

}  // namespace
}  // namespace strata::scheduler

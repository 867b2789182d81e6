// Servers that have lost their copy of a job's shards: when they may have one again, and what is
// told where no server can take one.
#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "proto/strata/job.pb.h"
#include "tests/scheduler/job/copies_cluster.h"

namespace strata::scheduler {
namespace {

constexpr absl::Duration kLease = CopiesCluster::kLease;

void Train(CopiesCluster& cluster) {
  cluster.Until([&] { return cluster.job().phase() == TRAINING; });
  cluster.Until([&] { return cluster.committed(0) >= 5; });
  REQUIRE(cluster.chain(0) == "s0,s1");
}

// The folder of the head is emptied, and its process lives.
void LoseHead(CopiesCluster& cluster) {
  cluster.Lose("s0");
  cluster.Until([&] { return cluster.chain(0) == "s1"; });
}

TEST_CASE("who lost a copy takes the place of the last ones, later or begun again",
          "[scheduler][chains]") {
  const bool restarted = GENERATE(true, false);
  INFO(restarted);
  CopiesCluster cluster("ab", 1,
                        [](JobSpec& spec) { spec.mutable_recovery()->set_replace_after("12s"); });
  Train(cluster);
  LoseHead(cluster);
  cluster.Kill("s1");  // for good
  if (restarted) cluster.Restart("s0");
  cluster.Pass(absl::Seconds(14));
  CHECK(cluster.job().generation() == (restarted ? 2 : 1));
  cluster.Pass(kLease * 3);
  CHECK(cluster.job().generation() == 2);
  CHECK(cluster.chain(0) == "s0");
  CHECK(absl::StrContains(cluster.Says("RolledBack"), "s1 stayed away; s0 takes their place"));
  cluster.Until([&] { return cluster.committed(0) > 5; });
}

TEST_CASE("who lost a copy is told with until when it gets none, and gets one when it begins again",
          "[scheduler][chains]") {
  CopiesCluster cluster("ab", 1);
  Train(cluster);
  LoseHead(cluster);
  for (int i = 0; i < 3; ++i) cluster.Round();
  REQUIRE(cluster.chain(0) == "s1");
  const std::string told = cluster.Says("UnderReplicated");
  INFO(told);
  CHECK(absl::StrContains(
      told,
      "; no server can take another: s0 lost its copy and gets none before 00:00:30 UTC, "
      "unless it is started again; start a server in another zone (strata-server --zone; "
      "default: each is one)"));
  SECTION("it begins again") {
    cluster.Restart("s0");
    cluster.Until([&] { return cluster.chain(0) == "s1,s0"; });
  }
  SECTION("it does not") {
    cluster.Pass(kLease * 2.9);
    CHECK(cluster.chain(0) == "s1");
    cluster.Pass(kLease * 0.3);
    cluster.Until([&] { return cluster.chain(0) == "s1,s0"; });
  }
  CHECK(cluster.Says("UnderReplicated").empty());
  CHECK(cluster.job().rollbacks() == 0);
}

TEST_CASE("a chain that is short tells why no server takes a copy", "[scheduler][chains]") {
  CopiesCluster cluster("aba", 1);
  Train(cluster);
  cluster.Kill("s1");
  cluster.Until([&] { return cluster.chain(0) == "s0"; });
  cluster.Round();
  const std::string ended = cluster.Says("UnderReplicated");
  INFO(ended);
  CHECK(absl::StrContains(
      ended,
      "; no server can take another: s1 has ended or answers nobody, as a server beside it saw; "
      "s2 is in zone a, which has one; start a server in another zone"));
  cluster.Pass(kLease * 1.5);
  const std::string silent = cluster.Says("UnderReplicated");
  INFO(silent);
  CHECK(absl::StrContains(silent, "another: s1 is silent; s2 is in zone a, which has one; start"));
  cluster.AddServer("s3", "c");
  cluster.Until([&] { return cluster.chain(0) == "s0+s3"; });
  CHECK_FALSE(absl::StrContains(cluster.Says("UnderReplicated"), "no server can"));
}

TEST_CASE("what is lost is told where the last copy fails, and not before", "[scheduler][chains]") {
  CopiesCluster cluster("ab", 1);
  Train(cluster);
  cluster.Fail("s0", "its log was removed");
  cluster.Until([&] { return cluster.chain(0) == "s1"; });
  CHECK(absl::StrContains(cluster.Says("Promoted"),
                          "server s0 has lost its copy (s0: its log was removed); its copy on "
                          "server s1 takes over shards 0-1"));
  CHECK(cluster.job().phase() == TRAINING);
  cluster.Fail("s1", "its log was removed");
  cluster.Until([&] { return cluster.job().phase() == OVER; });
  CHECK(cluster.Says("ServerFailed") ==
        "s1: its log was removed; no other copy of shards 0-1 is left: what was committed since "
        "the last checkpoint is lost. Submit the job again: with --resume it goes on from the "
        "newest checkpoint in spec.checkpoint.directory");
}

}  // namespace
}  // namespace strata::scheduler

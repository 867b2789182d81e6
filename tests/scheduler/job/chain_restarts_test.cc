// Copies whose processes begin again, or open anew what they had: who is waited for, for how long,
// and by whose word one leaves. A copy is not made anew for nothing.
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/core/uid.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/scheduler/job/copies_cluster.h"

namespace strata::scheduler {
namespace {

constexpr absl::Duration kLease = CopiesCluster::kLease;

void Train(CopiesCluster& cluster) {
  cluster.Until([&] { return cluster.job().phase() == TRAINING; });
  cluster.Until([&] { return cluster.committed(0) >= 5; });
}

void GoesOn(CopiesCluster& cluster) {
  const uint64_t before = cluster.committed(0);
  cluster.Until([&] { return cluster.committed(0) > before + 5; });
  CHECK(cluster.job().generation() == 1);
  CHECK(cluster.job().rollbacks() == 0);
}

TEST_CASE("members that restart together are waited for, whoever opens first",
          "[scheduler][chains]") {
  const std::string slow = GENERATE("s0", "s1");
  const std::string fast = slow == "s0" ? "s1" : "s0";
  const bool scheduler = GENERATE(false, true);
  INFO(slow << " " << scheduler);
  CopiesCluster cluster("abc", 1,
                        [](JobSpec& spec) { spec.mutable_recovery()->set_replace_after("30s"); });
  Train(cluster);
  REQUIRE(cluster.chain(0) == "s0,s1");
  const uint64_t epoch = cluster.epoch(0);
  cluster.Kill("s0");
  cluster.Kill("s1");
  cluster.SetSlow(slow, true);
  cluster.Start(fast);
  cluster.Start(slow);
  cluster.SyncServers({fast, fast, slow, fast});
  CHECK(cluster.chain(0) == "s0,s1");
  if (scheduler) cluster.RestartScheduler();
  cluster.Pass(absl::Seconds(60));  // longer than a lease, and than replaceAfter
  CHECK(cluster.chain(0) == "s0,s1");
  cluster.SetSlow(slow, false);
  GoesOn(cluster);
  CHECK(cluster.chain(0) == "s0,s1");
  CHECK(cluster.epoch(0) == epoch);
  CHECK(cluster.Events("UnderReplicated") == 0);
  CHECK(cluster.Events("CopyLost") == 0);
  CHECK(cluster.Events("Promoted") == 0);
}

TEST_CASE("who says what keeps it from opening is waited for a lease", "[scheduler][chains]") {
  CopiesCluster cluster("ab", 1);
  Train(cluster);
  cluster.SeeEnds(false);
  cluster.SetSlow("s0", true);
  cluster.Restart("s0");
  cluster.Pass(kLease / 4);
  REQUIRE(cluster.chain(0) == "s0,s1");
  cluster.Reopen("s0", "its disk is full");
  cluster.Pass(kLease * 0.9);
  CHECK(cluster.chain(0) == "s0,s1");
  CHECK(cluster.Says("ServerWaits") == "s0: its disk is full");
  cluster.Pass(kLease / 4);
  CHECK_FALSE(absl::StrContains(cluster.chain(0), "s0,"));
  CHECK(absl::StrContains(cluster.Says("Promoted"),
                          "server s0 does not open its copy (s0: its disk is full); its copy on "
                          "server s1 takes over"));
  GoesOn(cluster);
}

TEST_CASE("a process that began and says nothing of its copy is waited for a lease",
          "[scheduler][chains]") {
  CopiesCluster cluster("ab", 1);
  Train(cluster);
  cluster.SeeEnds(false);
  cluster.Restart("s1");
  const NodeReport report = cluster.Report("s1");
  cluster.Deliver(report);  // it registers
  cluster.SyncServers({"s0", "s0"});
  CHECK(cluster.chain(0) == "s0,s1");
  SECTION("then it speaks") {
    GoesOn(cluster);
    CHECK(cluster.chain(0) == "s0,s1");
    CHECK(cluster.Events("UnderReplicated") == 0);
  }
  SECTION("it does not") {
    cluster.Stall("s1", true);
    const auto wait = [&](absl::Duration time) {
      for (const absl::Time end = cluster.now() + time; cluster.now() < end;) {
        cluster.Pass(kLease / 16);
        cluster.Deliver(report);
      }
    };
    wait(kLease * 0.9);
    CHECK(cluster.chain(0) == "s0,s1");
    wait(kLease * 0.2);
    CHECK_FALSE(absl::StrContains(cluster.chain(0), "s0,s1"));
    CHECK(absl::StrContains(cluster.Says("CopyLost"), "server s1 does not open its copy"));
  }
}

TEST_CASE("a head that opens anew in place is replaced after a lease, where another has all",
          "[scheduler][chains]") {
  CopiesCluster cluster("ab", 1);
  Train(cluster);
  SECTION("another has all") {
    cluster.Reopen("s0", "its tier is damaged");
    cluster.Pass(kLease * 0.9);
    CHECK(cluster.chain(0) == "s0,s1");
    cluster.Pass(kLease / 4);
    CHECK(cluster.job().servers(0).name() == "s1");
    GoesOn(cluster);
  }
  SECTION("it is done before") {
    cluster.Reopen("s0", "its tier is damaged");
    cluster.Pass(kLease / 2);
    cluster.SetSlow("s0", false);
    GoesOn(cluster);
    CHECK(cluster.chain(0) == "s0,s1");
    CHECK(cluster.Events("UnderReplicated") == 0);
  }
  SECTION("it is alone") {
    cluster.Kill("s1");
    cluster.Until([&] { return cluster.chain(0) == "s0"; });
    cluster.Reopen("s0", "its tier is damaged");
    cluster.Pass(kLease * 3);
    CHECK(cluster.chain(0) == "s0");
    CHECK(cluster.Says("ServerWaits") == "s0: its tier is damaged");
    cluster.SetSlow("s0", false);
    GoesOn(cluster);
  }
}

TEST_CASE("the word of a copy that is not full sends nobody away", "[scheduler][chains]") {
  CopiesCluster cluster("abcd", 1, [](JobSpec& spec) { spec.mutable_storage()->set_replicas(3); });
  Train(cluster);
  REQUIRE(cluster.chain(0) == "s0,s1,s2");
  cluster.Kill("s2");
  cluster.Until([&] { return cluster.chain(0) == "s0,s1+s3"; });
  cluster.Accuse("s3", "s1", true);
  // It has entries of s1, and says that the connection is closed: as a joiner, then as a learner.
  cluster.SyncServers({"s3"});
  CHECK(cluster.chain(0) == "s0,s1+s3");
  cluster.SyncServers({"s0", "s1", "s3", "s0", "s1"});
  cluster.Until([&] { return cluster.chain(0) != "s0,s1+s3"; });
  CHECK(cluster.chain(0) == "s0,s1|s3");
  cluster.SyncServers({"s3", "s0"});
  CHECK(cluster.chain(0) == "s0,s1|s3");
  cluster.Accuse("s3", "s1", false);
  cluster.SyncServers({"s3"});
  // That of one that is full does.
  cluster.Accuse("s0", "s1", true);
  cluster.SyncServers({"s0", "s0"});
  CHECK_FALSE(absl::StrContains(cluster.chain(0), "s0,s1"));
  CHECK(cluster.job().rollbacks() == 0);
}

TEST_CASE("a late word on an earlier copy does not fail the one that is made now",
          "[scheduler][chains]") {
  const auto state = GENERATE(ServerJobReport::LOST, ServerJobReport::FAILED);
  CopiesCluster cluster("abc", 1, [](JobSpec& spec) { spec.mutable_storage()->set_replicas(3); });
  Train(cluster);
  REQUIRE(cluster.chain(0) == "s0,s1,s2");
  cluster.Kill("s2");
  cluster.Pass(kLease * 1.5);
  cluster.AddServer("s3", "d");
  cluster.SyncServers({"s3", "s0", "s1", "s3"});
  REQUIRE(cluster.chain(0) == "s0,s1+s3");
  const auto joining = [&] { return cluster.job().servers(0).chain().joining().log_id(); };
  const std::string earlier = joining();
  NodeReport late = cluster.Report("s3");
  REQUIRE(late.server_jobs_size() == 1);
  REQUIRE(late.server_jobs(0).copy().log_id() == earlier);
  late.mutable_server_jobs(0)->set_state(state);
  late.mutable_server_jobs(0)->set_message("it is of no use");
  // Who copied to it leaves, so that it begins anew.
  cluster.Kill("s1");
  cluster.SyncServers({"s0", "s0", "s0"});
  REQUIRE(cluster.chain(0) == "s0+s3");
  const std::string now = joining();
  REQUIRE(now != earlier);
  cluster.Deliver(late);
  CHECK(cluster.chain(0) == "s0+s3");
  CHECK(joining() == now);
  CHECK(cluster.Events("CopyGivenUp") == 0);
  cluster.Until([&] { return cluster.chain(0) == "s0,s3"; });
  GoesOn(cluster);
}

TEST_CASE("who was just seen to end is not asked to have a copy", "[scheduler][chains]") {
  CopiesCluster cluster("abcd", 2);
  Train(cluster);
  REQUIRE(cluster.chain(0) == "s0,s2");
  REQUIRE(cluster.chain(1) == "s1,s3");
  // A server beside it says so, which has no part in the shards that need a copy now.
  cluster.Kill("s3");
  cluster.SyncServers({"s1", "s1"});
  REQUIRE_FALSE(absl::StrContains(cluster.chain(1), "s3"));
  cluster.Kill("s2");
  cluster.SyncServers({"s0", "s0"});
  CHECK(cluster.chain(0) == "s0+s1");
}

TEST_CASE("what troubles a copy that is no head is told of a server", "[scheduler][chains]") {
  CopiesCluster cluster("ab", 1);
  Train(cluster);
  NodeReport report = cluster.Report("s1");
  REQUIRE(report.server_jobs_size() == 1);
  Trouble& trouble = *report.mutable_server_jobs(0)->add_troubles();
  trouble.set_reason("ImageDamaged");
  trouble.set_message("server s2 could not load it");
  cluster.Deliver(report);
  const JobStatus status = cluster.state().Status(1, cluster.now());
  REQUIRE(status.concerns_size() == 1);
  CHECK(status.concerns(0).reason() == "ImageDamaged");
  CHECK(status.concerns(0).who() == "server/s1");
  CHECK(status.concerns(0).known_by() == "server s2 could not load it");
}

TEST_CASE("a scheduler with older records gives no epoch of a chain twice", "[scheduler][chains]") {
  CopiesCluster cluster("abcd", 1);
  Train(cluster);
  REQUIRE(cluster.chain(0) == "s0,s1");
  const auto records = cluster.records();
  const uint64_t first = cluster.epoch(0);
  cluster.Kill("s1");
  cluster.Until([&] { return cluster.chain(0) == "s0,s2"; });
  for (int i = 0; i < 3; ++i) cluster.Round();  // they go by it
  const uint64_t told = cluster.epoch(0);
  REQUIRE(told > first);
  SECTION("without --restored it takes no word that is newer than its records") {
    cluster.RestartFrom(records, /*restored=*/false);
    NodeReport report = cluster.Report("s0");
    report.set_cluster_id(ClusterId{0, 1}.text());
    const absl::Status refused = cluster.TryToDeliver(report);
    INFO(refused);
    CHECK(absl::IsPermissionDenied(refused));
    CHECK(absl::StrContains(refused.message(), absl::StrCat("s0 knows epoch ", told)));
    CHECK(absl::StrContains(refused.message(), "start it once with --restored"));
  }
  SECTION("with it, chains go on above") {
    cluster.RestartFrom(records, /*restored=*/true);
    CHECK(cluster.epoch(0) > told);
    cluster.Start("s1");
    cluster.Until([&] { return cluster.job().phase() == TRAINING; });
    cluster.Until([&] { return cluster.committed(0) > 5; });
    CHECK(cluster.epoch(0) > told);
    CHECK(cluster.job().generation() > 1);
  }
}

TEST_CASE("who is silent is so since before the scheduler began again, and replaceAfter goes on",
          "[scheduler][chains]") {
  CopiesCluster cluster("abcd", 1,
                        [](JobSpec& spec) { spec.mutable_recovery()->set_replace_after("60s"); });
  Train(cluster);
  REQUIRE(cluster.chain(0) == "s0,s1");
  cluster.Kill("s0");
  cluster.Kill("s1");
  cluster.Pass(absl::Seconds(25));
  cluster.RestartScheduler();
  cluster.Pass(absl::Seconds(20));
  const std::string told = cluster.Says("ServerLost");
  INFO(told);
  CHECK(absl::StrContains(told, "server s0 is silent since 00:00:00 UTC"));
  CHECK(absl::StrContains(told, "take their place after 00:01:00 UTC"));
  CHECK(cluster.Events("ServerLost") <= 2);
  cluster.RestartScheduler();
  cluster.Pass(absl::Seconds(8));  // nobody's place is taken before it had time to return
  CHECK(cluster.job().generation() == 1);
  cluster.Pass(absl::Seconds(27));
  CHECK(cluster.job().generation() == 2);
  CHECK(cluster.chain(0) == "s2,s3");
}

TEST_CASE("a scheduler that began again has nothing copied by a server that it has not heard",
          "[scheduler][chains]") {
  const bool lapsed = GENERATE(true, false);
  INFO(lapsed);
  CopiesCluster cluster("ab", 1);
  Train(cluster);
  cluster.Kill("s1");
  cluster.Until([&] { return cluster.chain(0) == "s0"; });
  cluster.Kill("s0");
  if (lapsed) cluster.Pass(kLease * 1.5);
  cluster.RestartScheduler();
  cluster.Start("s1");
  for (int i = 0; i < 3; ++i) cluster.Round();
  CHECK(cluster.chain(0) == "s0");
  CHECK(cluster.Events("CopyBegun") == 0);
  cluster.Start("s0");
  cluster.Until([&] { return cluster.chain(0) == "s0,s1"; });
  CHECK(cluster.job().rollbacks() == 0);
}

TEST_CASE("a late word on who was copied to before makes no member of who joins now",
          "[scheduler][chains]") {
  CopiesCluster cluster("abcd", 1);
  Train(cluster);
  cluster.Kill("s1");
  cluster.Until([&] { return !absl::StrContains(cluster.chain(0), "s1"); });
  REQUIRE(cluster.chain(0) == "s0+s2");
  // The scheduler hears of what the two do when that copy is given up.
  NodeReport late = cluster.Report("s0");
  for (int i = 0; i < 10 && late.server_jobs(0).copy().next_ends().empty(); ++i) {
    cluster.Work();
    late = cluster.Report("s0");
  }
  REQUIRE(late.server_jobs(0).copy().next_ends_size() == 1);
  REQUIRE(cluster.chain(0) == "s0+s2");
  cluster.Kill("s2");
  for (int i = 0; i < 10 && cluster.chain(0) != "s0+s3"; ++i) cluster.SyncServers({"s0"});
  REQUIRE(cluster.chain(0) == "s0+s3");
  const uint64_t epoch = cluster.epoch(0);
  cluster.SyncServers({"s3", "s3"});
  REQUIRE(cluster.chain(0) == "s0+s3");
  cluster.Deliver(late);
  CHECK(cluster.chain(0) == "s0+s3");
  CHECK(cluster.epoch(0) == epoch);
  cluster.Until([&] { return cluster.chain(0) == "s0,s3"; });
}

}  // namespace
}  // namespace strata::scheduler

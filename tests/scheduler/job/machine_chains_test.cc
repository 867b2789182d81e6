// A job whose shards have copies: where they are placed, who takes over, who joins, and what
// becomes of it when the last ones are away.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
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

// As many copies as the job wants, all of them full.
bool IsWhole(CopiesCluster& cluster) {
  const JobStateRecord job = cluster.job();
  return std::all_of(job.servers().begin(), job.servers().end(), [](const ServerSlot& slot) {
    return slot.chain().full() == 2 && slot.chain().members_size() == 2;
  });
}

TEST_CASE("each copy is in another zone, spread over the servers", "[scheduler][chains]") {
  CopiesCluster cluster("aabb", 4);
  Train(cluster);
  CHECK(cluster.chain(0) == "s0,s2");
  CHECK(cluster.chain(1) == "s1,s3");
  CHECK(cluster.chain(2) == "s2,s0");
  CHECK(cluster.chain(3) == "s3,s1");
  std::set<std::string> ids;
  const JobStateRecord job = cluster.job();
  for (const ServerSlot& slot : job.servers()) {
    for (const CopyRecord& copy : slot.chain().members()) {
      CHECK(copy.log_id().size() == 32);
      CHECK(ids.insert(copy.log_id()).second);
    }
  }
  // A process with copies of several is told of each, and of the head's business where it leads.
  const NodeDirective told = cluster.Directive("s2");
  REQUIRE(told.server_jobs_size() == 2);
  const ServerJobDirective &backup = told.server_jobs(0), &head = told.server_jobs(1);
  CHECK(backup.server_index() == 0);
  CHECK(backup.chain().place() == 1);
  CHECK(backup.chain().full() == 2);
  CHECK(backup.chain().min_replicas() == 1);
  CHECK(backup.chain().members(0).data_address() == "s0");
  CHECK_FALSE(backup.lane_sessions_known());
  CHECK(head.server_index() == 2);
  CHECK(head.chain().place() == 0);
  CHECK(head.lane_sessions_known());
  CHECK(head.spec().metadata().name() == "job");
  CHECK(backup.shards_size() == 8);
}

TEST_CASE("a job waits for zones, and says which there are", "[scheduler][chains]") {
  CopiesCluster cluster("aa", 1);
  for (int i = 0; i < 5; ++i) cluster.Round();
  CHECK(cluster.state().Status(1, cluster.now()).state() == PENDING);
  CHECK(cluster.Says("WaitingForZones") ==
        "waiting for zones: spec.storage.replicas wants 2 copies of each shard in 2 zones, 1 "
        "there: a (s0, s1); start a server elsewhere (strata-server --zone; default: each is one), "
        "or lower replicas");
  cluster.AddServer("s2", "b");
  Train(cluster);
  CHECK(cluster.chain(0) == "s0,s2");
}

TEST_CASE("a head that ends is followed by its copy without a roll-back", "[scheduler][chains]") {
  CopiesCluster cluster("abc", 2);
  Train(cluster);
  REQUIRE(cluster.chain(0) == "s0,s2");
  REQUIRE(cluster.chain(1) == "s1,s2");
  const uint64_t epoch = cluster.job().map_epoch();
  const uint64_t before = cluster.committed(0);
  cluster.Kill("s0");
  cluster.Round();  // its neighbours say that they saw it
  const JobStateRecord job = cluster.job();
  CHECK(job.servers(0).name() == "s2");
  CHECK(job.map_epoch() > epoch);
  CHECK(absl::StrContains(cluster.Says("Promoted"), "server s0 has ended or answers nobody"));
  CHECK(absl::StrContains(cluster.Says("UnderReplicated"), "shards 0-1 have 1 of 2 copies (s2)"));
  CHECK(cluster.WorkerDirective().worker_jobs(0).server_addresses(0) == "s2");
  // Calls that are on their way to others are not refused: no route has changed.
  CHECK(cluster.WorkerDirective().worker_jobs(0).map_epoch() == epoch);
  CHECK(cluster.Directive("s1").server_jobs(0).map_epoch() == epoch);
  CHECK(cluster.Shards().map_epoch() == epoch);
  cluster.Until([&] { return IsWhole(cluster); });
  CHECK(cluster.chain(0) == "s2,s1");
  CHECK(cluster.chain(1) == "s1,s2");
  CHECK(cluster.committed(0) > before);
  CHECK(cluster.job().generation() == 1);
  CHECK(cluster.job().rollbacks() == 0);
  CHECK(cluster.job().phase() == TRAINING);
  CHECK(cluster.Says("UnderReplicated").empty());
  CHECK(cluster.Says("Replicated") == "all shards have 2 copies again");
}

TEST_CASE("where nobody sees its end a head is followed after its lease", "[scheduler][chains]") {
  CopiesCluster cluster("ab", 1);
  Train(cluster);
  cluster.SeeEnds(false);
  cluster.Kill("s0");
  cluster.Pass(kLease * 0.9);
  CHECK(cluster.chain(0) == "s0,s1");
  cluster.Pass(kLease / 2);
  CHECK(cluster.chain(0) == "s1");
  CHECK(absl::StrContains(cluster.Says("Promoted"),
                          "server s0 is silent (the scheduler has not heard it for a lease)"));
  // Back on its machine it joins under another log id, and is full in the end.
  const std::string left = cluster.job().servers(0).chain().members(0).log_id();
  cluster.Start("s0");
  cluster.Until([&] { return IsWhole(cluster); });
  CHECK(cluster.chain(0) == "s1,s0");
  CHECK(cluster.job().servers(0).chain().members(0).log_id() == left);
  CHECK(cluster.job().rollbacks() == 0);
}

TEST_CASE("a backup that ends leaves, and commits go on", "[scheduler][chains]") {
  CopiesCluster cluster("ab", 1);
  Train(cluster);
  cluster.Kill("s1");
  const uint64_t before = cluster.committed(0);
  cluster.Until([&] { return cluster.committed(0) > before + 5; });
  CHECK(cluster.chain(0) == "s0");
  CHECK(cluster.job().servers(0).chain().short_since_unix_ms() > 0);
  CHECK(cluster.job().rollbacks() == 0);
}

TEST_CASE("below minReplicas commits wait, and it is told", "[scheduler][chains]") {
  CopiesCluster cluster("ab", 1,
                        [](JobSpec& spec) { spec.mutable_storage()->set_min_replicas(2); });
  Train(cluster);
  cluster.Kill("s1");
  for (int i = 0; i < 3; ++i) cluster.Round();
  const uint64_t before = cluster.committed(0);
  for (int i = 0; i < 5; ++i) cluster.Round();
  CHECK(cluster.committed(0) == before);
  CHECK(cluster.Directive("s0").server_jobs(0).chain().min_replicas() == 2);
  CHECK(absl::StrContains(cluster.Says("UnderReplicated"), "minReplicas is 2: commits wait"));
  cluster.Start("s1");
  cluster.Until([&] { return cluster.committed(0) > before; });
}

TEST_CASE("two servers that die at once and come back are waited for, whoever is first",
          "[scheduler][chains]") {
  const bool first = GENERATE(true, false), scheduler = GENERATE(false, true);
  INFO(first << " " << scheduler);
  CopiesCluster cluster("ab", 1);
  Train(cluster);
  cluster.Kill("s0");
  cluster.Kill("s1");
  if (scheduler) cluster.RestartScheduler();
  // One of the two registers while the other's lease runs: that one may be dead, or not.
  cluster.Start(first ? "s0" : "s1");
  cluster.SyncServers({first ? "s0" : "s1"});
  CHECK(cluster.chain(0) == "s0,s1");
  const bool back = GENERATE(true, false);
  INFO(back);
  if (back) {
    cluster.Start(first ? "s1" : "s0");
    cluster.Pass(kLease);
    CHECK(cluster.chain(0) == "s0,s1");
    CHECK(cluster.Events("UnderReplicated") == 0);
  } else {
    cluster.Pass(kLease * 1.5);
    CHECK(cluster.chain(0) == (first ? "s0" : "s1"));
  }
  const uint64_t before = cluster.committed(0);
  cluster.Until([&] { return cluster.committed(0) > before + 5; });
  CHECK(cluster.job().generation() == 1);
  CHECK(cluster.job().rollbacks() == 0);
}

TEST_CASE("the last copies are waited for until replaceAfter, then others take their place",
          "[scheduler][chains]") {
  CopiesCluster cluster("abcd", 1,
                        [](JobSpec& spec) { spec.mutable_recovery()->set_replace_after("60s"); });
  Train(cluster);
  REQUIRE(cluster.chain(0) == "s0,s1");
  REQUIRE(cluster.state().WantCheckpoint(1, cluster.now()).ok());
  cluster.Kill("s0");
  cluster.Kill("s1");
  cluster.Pass(absl::Seconds(50));
  CHECK(cluster.job().generation() == 1);
  const std::string waits = cluster.Says("ServerLost");
  INFO(waits);
  CHECK(absl::StrContains(waits,
                          "the last copies of shards 0-1 are away: server s0 is silent since"));
  CHECK(absl::StrContains(waits, ", server s1 is silent since"));
  CHECK(absl::StrContains(waits, "else other servers take their place after"));
  CHECK(absl::StrContains(waits, "from the beginning, as no checkpoint was completed yet"));
  SECTION("they come back") {
    cluster.Start("s1");
    const uint64_t before = cluster.committed(0);
    cluster.Until([&] { return cluster.committed(0) > before + 5; });
    CHECK(cluster.job().generation() == 1);
    CHECK(cluster.job().servers(0).name() == "s1");
  }
  SECTION("they stay away") {
    cluster.Pass(absl::Seconds(15));
    CHECK(cluster.job().generation() == 2);
    CHECK(cluster.chain(0) == "s2,s3");
    CHECK(absl::StrContains(cluster.Says("RolledBack"),
                            "shards 0-1 are lost, with their last copies: s0, s1 stayed away; s2, "
                            "s3 take their place; generation 2 starts from the beginning"));
    cluster.Until([&] { return cluster.committed(0) > 5; });
  }
}

TEST_CASE("several chains that are away are told in one text, once", "[scheduler][chains]") {
  CopiesCluster cluster("ab", 2);
  Train(cluster);
  cluster.Kill("s0");
  cluster.Kill("s1");
  cluster.Pass(kLease * 3);
  const std::string text = cluster.Says("ServerLost");
  INFO(text);
  CHECK(absl::StrContains(text, "shards 0-1"));
  CHECK(absl::StrContains(text, "shards 2-3"));
  CHECK(cluster.Events("ServerLost") <= 2);  // their leases end one after the other
}

TEST_CASE("copies that are all lost are told by name, and the job goes back",
          "[scheduler][chains]") {
  CopiesCluster cluster("ab", 1);
  Train(cluster);
  for (const char* name : {"s0", "s1"}) {
    cluster.Kill(name);
    cluster.Wipe(name);
    cluster.Start(name);
  }
  cluster.Until([&] { return cluster.job().generation() == 2; });
  const std::string why = cluster.Says("RolledBack");
  INFO(why);
  CHECK(absl::StrContains(why,
                          "shards 0-1 are lost, with the last copy: s0: its files are gone; "
                          "s1: its files are gone; generation 2 starts from the beginning"));
  Train(cluster);
  CHECK(IsWhole(cluster));
}

TEST_CASE("a copy whose folder was emptied leaves and joins again", "[scheduler][chains]") {
  CopiesCluster cluster("ab", 1);
  Train(cluster);
  const bool head = GENERATE(true, false);
  const std::string name = head ? "s0" : "s1";
  cluster.SeeEnds(false);
  cluster.Kill(name);
  cluster.Wipe(name);
  cluster.Start(name);
  cluster.Until([&] { return cluster.chain(0) != "s0,s1"; });
  cluster.Pass(kLease * 4);  // who failed is not asked again at once
  CHECK(IsWhole(cluster));
  CHECK(cluster.chain(0) == (head ? "s1,s0" : "s0,s1"));
  CHECK(cluster.job().rollbacks() == 0);
}

TEST_CASE("who is copied to and dies is given up, and another one joins", "[scheduler][chains]") {
  CopiesCluster cluster("abcd", 1);
  Train(cluster);
  cluster.Kill("s1");
  cluster.Until([&] { return !absl::StrContains(cluster.chain(0), "s1"); });
  REQUIRE(cluster.chain(0) == "s0+s2");
  const std::string id = cluster.job().servers(0).chain().joining().log_id();
  cluster.Kill("s2");
  cluster.Pass(kLease * 1.5);
  CHECK(absl::StrContains(cluster.chain(0), "s3"));
  cluster.Until([&] { return IsWhole(cluster); });
  CHECK(cluster.chain(0) == "s0,s3");
  CHECK(cluster.job().servers(0).chain().members(1).log_id() != id);
}

TEST_CASE("a scheduler that comes back in the midst of a join goes on with it",
          "[scheduler][chains]") {
  CopiesCluster cluster("abc", 1);
  Train(cluster);
  cluster.Kill("s0");
  for (int i = 0; i < 40 && !(IsWhole(cluster) && cluster.chain(0) == "s1,s2"); ++i) {
    cluster.Round();
    const std::string chain = cluster.chain(0);
    const uint64_t epoch = cluster.epoch(0);
    cluster.RestartScheduler();
    CHECK(cluster.chain(0) == chain);
    CHECK(cluster.epoch(0) == epoch);
  }
  CHECK(cluster.chain(0) == "s1,s2");
  CHECK(IsWhole(cluster));
  CHECK(cluster.job().rollbacks() == 0);
}

TEST_CASE("words of a process that is gone, and of another log, count for nothing",
          "[scheduler][chains]") {
  CopiesCluster cluster("ab", 1);
  Train(cluster);
  cluster.Kill("s1");
  cluster.Until([&] { return cluster.chain(0) == "s0"; });
  cluster.Start("s1");
  cluster.Until([&] { return cluster.chain(0) == "s0+s1"; });
  NodeReport old = cluster.Report("s1");
  ServerJobReport& j = *old.add_server_jobs();
  j.set_job(1);
  j.set_job_uid(JobUid{0, 1}.text());
  j.set_generation(1);
  j.set_state(ServerJobReport::OPEN);
  j.mutable_copy()->set_log_id("an earlier one");
  cluster.Deliver(old);
  CHECK(cluster.job().servers(0).chain().joining().opened_generation() == 0);
}

TEST_CASE("a chain that changes gives up an asynchronous cut, and keeps a synchronous one",
          "[scheduler][chains]") {
  const std::string mode = GENERATE("bsp", "async");
  INFO(mode);
  CopiesCluster cluster("ab", 1, [&](JobSpec& spec) { spec.mutable_training()->set_mode(mode); });
  Train(cluster);
  REQUIRE(cluster.state().WantCheckpoint(1, cluster.now()).ok());
  cluster.Until([&] { return cluster.job().cuts().pending_size() == 1; });
  const uint64_t cut = cluster.job().cuts().pending(0).cut();
  CHECK(cluster.Directive("s0").server_jobs(0).cuts_size() == 1);
  CHECK(cluster.Directive("s1").server_jobs(0).cuts_size() == 0);
  cluster.Kill("s0");
  cluster.Until([&] { return cluster.chain(0) == "s1"; });
  cluster.Until([&] { return cluster.job().cuts().pending_size() == 1; });
  const ServerJobDirective head = cluster.Directive("s1").server_jobs(0);
  REQUIRE(head.cuts_size() == 1);
  if (mode == "bsp") {
    CHECK(head.cuts(0).cut() == cut);
  } else {
    CHECK(head.cuts(0).cut() > cut);
    CHECK(head.given_up_through() >= cut);
  }
  CHECK(cluster.job().left_writers());  // the head before may be writing files of it
}

TEST_CASE("copies are shown with role, zone, epoch and what they say", "[scheduler][chains]") {
  CopiesCluster cluster("abc", 1);
  Train(cluster);
  cluster.Kill("s0");
  cluster.Until([&] { return cluster.chain(0) == "s1+s2"; });
  cluster.Round();
  const JobShards shards = cluster.Shards();
  REQUIRE(shards.servers_size() == 1);
  const ShardServer& server = shards.servers(0);
  CHECK(server.name() == "s1");
  CHECK(server.chain_epoch() == cluster.epoch(0));
  REQUIRE(server.copies_size() == 2);
  CHECK(server.copies(0).role() == CopyStatus::HEAD);
  CHECK(server.copies(0).zone() == "b");
  CHECK(server.copies(0).alive());
  CHECK(server.copies(0).report().ends_size() > 0);
  CHECK(server.copies(1).server() == "s2");
}

TEST_CASE("room is kept for each copy, and each server closes the job", "[scheduler][chains]") {
  CopiesCluster cluster(
      "ab", 2, [](JobSpec& spec) { spec.mutable_storage()->set_dram_bytes_per_server("1MiB"); });
  Train(cluster);
  const JobStatus status = cluster.state().Status(1, cluster.now());
  CHECK(status.reserved().dram_bytes() >= uint64_t{2} << 20);
  cluster.Cancel();
  const JobStateRecord job = cluster.job();
  std::vector<std::string> closing(job.closing().begin(), job.closing().end());
  std::sort(closing.begin(), closing.end());
  CHECK(closing == std::vector<std::string>{"s0", "s1", "w0"});
  REQUIRE(cluster.Directive("s1").server_jobs_size() == 1);
  CHECK(cluster.Directive("s1").server_jobs(0).close());
}

}  // namespace
}  // namespace strata::scheduler

// What a job starts from after it lost its shards: a checkpoint that one server cannot read, that
// none can, that is not there, and none at all.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/scheduler/job/recovery_cluster.h"

namespace strata::scheduler {
namespace {

constexpr absl::Duration kLease = RecoveryCluster::kLease;

TEST_CASE("what one server cannot read, a spare one reads: the checkpoint stays",
          "[scheduler][recovery]") {
  RecoveryCluster cluster(2, 1);
  cluster.Train(2);
  const std::string folder = cluster.TakeCheckpoint();
  const std::string reader = cluster.names()[0], spare = reader == "s0" ? "s1" : "s0";
  cluster.server(reader).ReadBadly(1000);
  cluster.Restart(reader);
  cluster.Until([&] { return cluster.job().generation() == 3; });
  cluster.RestartScheduler();  // in the midst of it
  cluster.CheckSucceeds();
  CHECK(cluster.names() == std::vector<std::string>{spare});
  CHECK(cluster.job().generation() == 3);
  CHECK(cluster.job().rollbacks() == 1);  // to read again is none
  CHECK(cluster.job().restore_from() == folder);
  CHECK(cluster.job().set_aside_size() == 0);
  CHECK(cluster.job().doubted_checkpoint().empty());
  CHECK(cluster.job().left_writers());  // of a server that has no place in the job any more
  const std::string why = cluster.Says("CheckpointReadAgain");
  CHECK(absl::StrContains(why, absl::StrCat(reader, ": ", folder, " is damaged")));
  CHECK(absl::StrContains(why, absl::StrCat("server ", spare, " what ", reader, " could not")));
}

// It may not come back under its name: nobody waits for it.
TEST_CASE("a server whose name a worker took is replaced", "[scheduler][recovery]") {
  RecoveryCluster cluster(2, 1);
  cluster.Train(2);
  const std::string gone = cluster.names()[0], spare = gone == "s0" ? "s1" : "s0";
  cluster.server(gone).Kill();
  const bool waits = GENERATE(true, false);
  if (waits) cluster.server(spare).Kill();
  cluster.Pass(kLease + kLease / 4);
  cluster.WorkerComes(gone);
  if (waits) {
    cluster.Pass(kLease * 3);
    CHECK(absl::StrContains(cluster.Says("ServerLost"),
                            gone + " is away, and a worker has its name; the job waits for it. End "
                                   "that worker, and start it again"));
    cluster.Restart(spare);
  }
  cluster.CheckSucceeds();
  CHECK(cluster.names() == std::vector<std::string>{spare});
}

TEST_CASE("several servers that are away are told in one text, once", "[scheduler][recovery]") {
  RecoveryCluster cluster(2, 2);
  cluster.Train(2);
  for (const char* name : {"s0", "s1"}) cluster.server(name).Kill();
  cluster.Pass(kLease * 3);
  const std::string text = cluster.Says("ServerLost");
  INFO(text);
  CHECK(absl::StrContains(text, "server s0 at s0 is silent"));
  CHECK(absl::StrContains(text, "server s1 at s1 is silent"));
  CHECK(cluster.Events("ServerLost") <= 2);  // their leases end one after the other
}

TEST_CASE("a bad reader that nobody can replace is told, and waited for", "[scheduler][recovery]") {
  RecoveryCluster cluster(2, 2);
  cluster.Train(2);
  const std::string folder = cluster.TakeCheckpoint();
  const std::vector<std::string> before = cluster.names();
  cluster.server("s0").ReadBadly(1000);
  cluster.Restart("s0");
  cluster.Until([&] { return !cluster.Says("BadReader").empty(); });
  // The other one read what this one could not; this one cannot read the other's part, either.
  CHECK(cluster.names() == std::vector<std::string>{before[1], before[0]});
  CHECK(cluster.job().generation() == 3);
  CHECK(absl::StrContains(cluster.Says("BadReader"), folder + " stays"));
  cluster.Pass(kLease * 2.5);
  CHECK(cluster.job().generation() == 3);
  cluster.Pass(kLease);  // tries again
  CHECK(cluster.job().generation() == 4);
  SECTION("another server comes") { cluster.AddServer("s2"); }
  SECTION("it is started again, on a machine that was mended") {
    cluster.server("s0").ReadBadly(0);
    cluster.Restart("s0");
  }
  SECTION("it reads well at last") {
    cluster.server("s0").ReadBadly(0);
    cluster.Pass(kLease * 3.5);
  }
  cluster.CheckSucceeds();
  CHECK(cluster.job().rollbacks() == 1);
  CHECK(cluster.job().restore_from() == folder);
  CHECK(cluster.job().set_aside_size() == 0);
}

TEST_CASE("a server that is alone reads again itself", "[scheduler][recovery]") {
  RecoveryCluster cluster(1, 1);
  cluster.Train(2);
  const std::string older = cluster.TakeCheckpoint();
  cluster.Train(2);
  const std::string newer = cluster.TakeCheckpoint();
  const int bad_reads = GENERATE(1, 2);
  INFO(bad_reads);
  cluster.server("s0").ReadBadly(bad_reads);
  cluster.Restart("s0");
  cluster.CheckSucceeds();
  CHECK(cluster.job().restore_from() == (bad_reads == 1 ? newer : older));
  CHECK(cluster.job().set_aside_size() == bad_reads - 1);
}

TEST_CASE("doubts about a checkpoint end when it was read", "[scheduler][recovery]") {
  RecoveryCluster cluster(1, 1);
  cluster.Train(2);
  const std::string folder = cluster.TakeCheckpoint();
  for (int i = 0; i < 3; ++i) {
    cluster.server("s0").ReadBadly(1);
    cluster.Restart("s0");
    cluster.Until([&] { return cluster.job().phase() == OPENING; });
    cluster.Until([&] { return cluster.job().phase() == TRAINING; });
  }
  CHECK(cluster.job().restore_from() == folder);
  CHECK(cluster.job().set_aside_size() == 0);
}

TEST_CASE("a checkpoint that two servers find damaged is set aside for the one before",
          "[scheduler][recovery]") {
  const auto [servers, of_the_job] =
      GENERATE(std::make_pair(2, 2), std::make_pair(3, 2), std::make_pair(2, 1));
  INFO(servers << " servers, " << of_the_job << " of the job");
  RecoveryCluster cluster(static_cast<uint32_t>(servers), static_cast<uint32_t>(of_the_job));
  cluster.Train(2);
  const std::string older = cluster.TakeCheckpoint();
  cluster.Train(2);
  const std::string newer = cluster.TakeCheckpoint();
  cluster.disk[newer].damaged = true;
  cluster.Restart(cluster.names()[0]);
  cluster.CheckSucceeds();
  CHECK(cluster.job().restore_from() == older);
  CHECK(cluster.job().set_aside_size() == 1);
  CHECK(absl::StrContains(cluster.Says("CheckpointDamaged"), newer));
  CHECK(absl::StrContains(cluster.Says("CheckpointDamaged"), "found damage before"));
  CHECK(absl::StrContains(cluster.Says("RolledBack"), "starts from checkpoint " + older));
  CHECK(cluster.job().rollbacks() == 2);
}

TEST_CASE("a job whose checkpoints are all damaged does not start anew unasked",
          "[scheduler][recovery]") {
  RecoveryCluster cluster(2, 1);
  for (int i = 0; i < 2; ++i) {
    cluster.Train(2);
    cluster.disk[cluster.TakeCheckpoint()].damaged = true;
  }
  cluster.Restart(cluster.names()[0]);
  cluster.Until([&] { return cluster.job().phase() == OVER; });
  CHECK(cluster.job().state() == FAILED);
  const std::string why = cluster.Says("CheckpointDamaged");
  INFO(why);
  for (const auto& [folder, contents] : cluster.disk) CHECK(absl::StrContains(why, folder));
  CHECK(absl::StrContains(why, "--resume"));
  CHECK(absl::StrContains(why, "--overwrite"));
}

TEST_CASE("a job that gives up a cut that it needs ends once, also while others are taken",
          "[scheduler][recovery]") {
  RecoveryCluster cluster(2, 2, 10);
  cluster.Train(4);
  REQUIRE(cluster.job().cuts().pending_size() > 0);  // asked for ahead
  cluster.WantCutAt(1);                              // servers are past it
  for (int i = 0; i < 20 && cluster.job().phase() != OVER; ++i) cluster.Pass(absl::Seconds(1));
  const JobStateRecord job = cluster.job();
  REQUIRE(job.state() == FAILED);
  CHECK(cluster.Events("CheckpointFailed") == 1);
  CHECK(absl::StrContains(cluster.Says("CheckpointFailed"), "past step 1,"));
  std::set<std::string> closing;  // each is to say once that it closed the job
  for (const std::string& name : job.closing()) CHECK(closing.insert(name).second);
  cluster.Pass(kLease);
  CHECK(cluster.job().closing_size() == 0);
}

TEST_CASE("a checkpoint that is written anew is whole again", "[scheduler][recovery]") {
  RecoveryCluster cluster(2, 2, 10);
  cluster.Until([&] { return cluster.job().cuts().complete_size() == 2; });
  const std::string newer = cluster.job().cuts().complete(1).folder();
  cluster.disk[newer].damaged = true;
  cluster.Restart(cluster.names()[0]);
  cluster.Until([&] { return cluster.job().set_aside_size() == 1; });
  CHECK(cluster.job().set_aside(0) == newer);
  cluster.disk[newer].damaged = false;
  cluster.Until([&] { return cluster.job().cuts().complete_size() == 2; });
  CHECK(cluster.job().cuts().complete(1).folder() == newer);
  CHECK(cluster.job().set_aside_size() == 0);
  cluster.CheckSucceeds();
}

TEST_CASE("a checkpoint that is not there is waited for", "[scheduler][recovery]") {
  const uint32_t of_the_job = GENERATE(1, 2);
  INFO(of_the_job << " servers");
  RecoveryCluster cluster(2, of_the_job);
  cluster.Train(2);
  const std::string folder = cluster.TakeCheckpoint();
  auto away = cluster.disk.extract(folder);
  cluster.Restart(cluster.names()[0]);
  cluster.Until([&] { return !cluster.Says("ServerWaits").empty(); });
  CHECK(absl::StrContains(cluster.Says("ServerWaits"), folder + " is not there"));
  const uint64_t generation = cluster.job().generation();
  cluster.Pass(kLease * 30);
  CHECK(cluster.job().phase() == OPENING);
  CHECK(cluster.job().generation() == generation);
  CHECK(cluster.Events("ServerWaits") == of_the_job);  // not each report anew
  cluster.disk.insert(std::move(away));
  cluster.CheckSucceeds();
  CHECK(cluster.job().restore_from() == folder);
  CHECK(cluster.job().set_aside_size() == 0);
}

TEST_CASE("a job that completed no checkpoint starts at the beginning, and says so",
          "[scheduler][recovery]") {
  RecoveryCluster cluster(1, 1);
  cluster.Train(4);
  cluster.Restart("s0");
  cluster.Until([&] { return cluster.job().generation() == 2; });
  CHECK(absl::StrContains(cluster.Says("RolledBack"),
                          "from the beginning, as no checkpoint was completed yet"));
  cluster.CheckSucceeds();
}

}  // namespace
}  // namespace strata::scheduler

// Promises P1 and P3 where rows lie below DRAM, in each SSD tier: real servers killed at random
// moments, and at every place of the tier's writing, and what they give is the undisturbed model.
#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/e2e/cluster/embedded_training.h"
#include "tests/e2e/cluster/process_cluster.h"
#include "tests/e2e/cluster/table_room.h"
#include "tests/faults/tiered_job.h"
#include "tests/skip.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata::testing {
namespace {

// No seed of tests/seed.h: it would repeat no run. Servers are killed when a step is heard of, and
// how far they are by then, no number says. It draws who is killed after which step.
constexpr uint64_t kDraws = 1;

// The job with checkpoints, most of them increments, into a new folder.
TrainingJob WithCheckpoints(TrainingJob job, const std::string& folder) {
  CheckpointSpec& checkpoint = *job.mutable_spec()->mutable_checkpoint();
  checkpoint.set_directory(folder);
  checkpoint.set_every_steps(4);
  checkpoint.set_full_every(4);
  return job;
}

// What training left is whole on disk, too.
void CheckNewest(ProcessCluster& cluster, const TrainingJob& job, const JobStatus& reference) {
  const CommandResult verify =
      cluster.Strata({"checkpoint", "verify", job.spec().checkpoint().directory(), "--json"});
  INFO(verify.out << verify.err);
  CHECK(verify.exit_code == 0);
  CHECK(absl::StrContains(verify.out, reference.model_hash()));
}

// The tiers that are tried, one after the other on the same servers.
struct Tiers {
  const char* ssd;
  bool hbm;
};
constexpr Tiers kTiers[] = {{"rocksdb", false}, {"rowfile", false}, {"rowfile", true}};

std::string Name(const Tiers& tiers) { return absl::StrCat(tiers.ssd, tiers.hbm ? "-hbm" : ""); }

TrainingJob On(const Tiers& tiers, const TrainingJob& job) {
  const TrainingJob below = BelowDram(job, tiers.ssd);
  return tiers.hbm ? WithHbm(below) : below;
}

TEST_CASE("servers killed at any moment lose nothing of rows below DRAM", "[faults][p1][p3]") {
  INFO("drawn with " << kDraws);
  std::mt19937_64 random(kDraws);
  auto folder = ScratchFolder::Make("strata-fault");
  REQUIRE(folder.ok());
  const TrainingJob jobs[] = {TieredJob(folder->path(), 2), TieredTablesJob(folder->path(), 2)};
  const JobStatus references[] = {Train(jobs[0]), Train(jobs[1])};
  ProcessCluster cluster({.folder = folder->path() + "/cluster", .server_flags = SmallMemtables()});
  const std::vector<std::vector<std::string>> victims = {
      {"server-0"}, {"server-1"}, {"server-0", "server-1"}};
  const int rounds = LongRun() ? 30 : 1;
  // Every tier with one table, and the one with the most below a GPU tier with five.
  const int of_round = static_cast<int>(std::size(kTiers)) + 1;
  for (int round = 0; round < rounds * of_round; ++round) {
    const auto number = static_cast<size_t>(round % of_round);
    const Tiers& tiers = kTiers[std::min(number, std::size(kTiers) - 1)];
    const bool tables = number == std::size(kTiers);
    const TrainingJob& job = jobs[tables ? 1 : 0];
    const JobStatus& reference = references[tables ? 1 : 0];
    const TrainingJob run =
        WithCheckpoints(On(tiers, job), absl::StrCat(folder->path(), "/checkpoints-", round));
    uint64_t at = 14 + random() % 8;
    const uint64_t id = cluster.SubmitAndStop(run, "server-1", StopAtStep(at, tables ? 1 : 4));
    AwaitRowsBelow(cluster.folder());
    std::string story = absl::StrCat(Name(tiers), tables ? ", five tables" : "", ", round ", round);
    for (int kills = 0; kills < 3; ++kills) {
      const JobStatus status =
          kills == 0 ? cluster.Status(id) : cluster.AwaitStep(id, at += random() % 10);
      const auto& who = victims[random() % victims.size()];
      cluster.KillAndStart(who);
      cluster.process("server-1").Signal(SIGCONT);  // where it was not among them
      for (const std::string& name : who) absl::StrAppend(&story, " ", status.step(), ":", name);
    }
    INFO(story);
    const JobStatus end = cluster.AwaitEnd(id);
    CheckSameModel(end, reference);
    CHECK(end.rollbacks() == 0);
    CheckNewest(cluster, run, reference);
    if (tables) {
      const TableRoom room = RoomOf(run.spec().checkpoint().directory(), "first", run.spec());
      INFO(room.rows << " rows, at most " << room.most_in_dram << " in DRAM");
      CHECK(room.MostlyBelow());
    }
  }
}

// At all places in one job of each tier: the tier begins anew with each start of its server.
TEST_CASE("a server killed at each place where a tier is written", "[faults][p1][p3]") {
  auto folder = ScratchFolder::Make("strata-fault");
  REQUIRE(folder.ok());
  const TrainingJob job = TieredJob(folder->path(), 3);
  const JobStatus reference = Train(job);
  ProcessCluster cluster({.folder = folder->path() + "/cluster", .server_flags = SmallMemtables()});
  for (const Tiers& tiers : kTiers) {
    INFO(Name(tiers));
    std::vector<std::string> points = {"tier.written=kill@90", "tier.written=kill@7"};
    if (std::string(tiers.ssd) == "rowfile") {
      points = {"tier.flush=kill@6", "tier.merge=kill@2", "tier.sync=kill@4",
                "tier.manifest=kill@5", "tier.committed=kill@7"};
    }
    const TrainingJob run =
        WithCheckpoints(On(tiers, job), absl::StrCat(folder->path(), "/", Name(tiers)));
    const uint64_t id = cluster.SubmitAndLose(run, "server-1", points.front());
    cluster.LoseAgain("server-1", {points.begin() + 1, points.end()});
    cluster.Start("server-1");
    const JobStatus end = cluster.AwaitEnd(id);
    CheckSameModel(end, reference);
    CHECK(end.rollbacks() == 0);
    CheckNewest(cluster, run, reference);
  }
}

}  // namespace
}  // namespace strata::testing

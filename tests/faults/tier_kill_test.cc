// Promises P1 and P3 where rows lie below DRAM, in each SSD tier: real servers killed at random
// moments, and at every place of the tier's writing, and what they give is the undisturbed model.
#include <catch2/catch.hpp>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tests/e2e/process_cluster.h"
#include "tests/faults/tiered_job.h"
#include "tests/skip.h"
#include "tools/cluster/scratch_folder.h"

namespace strata::testing {
namespace {

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

TEST_CASE("servers killed at any moment lose nothing of rows below DRAM", "[faults][p1][p3]") {
  const std::string tiers = GENERATE(as<std::string>{}, "rocksdb", "rowfile", "rowfile, HBM");
  const std::string ssd = tiers.substr(0, tiers.find(','));
  const uint64_t seed = std::random_device{}();
  std::fprintf(stderr, "%s: seed %llu\n", tiers.c_str(), static_cast<unsigned long long>(seed));
  INFO(tiers << ", seed " << seed);
  std::mt19937_64 random(seed);
  auto folder = ScratchFolder::Make("strata-fault");
  REQUIRE(folder.ok());
  TrainingJob job = TieredJob(folder->path(), 2);
  const JobStatus reference = Undisturbed(job);
  job = BelowDram(job, ssd);
  if (tiers != ssd) job = WithHbm(job);
  ProcessCluster cluster({.folder = folder->path() + "/cluster", .server_flags = SmallMemtables()});
  const std::vector<std::vector<std::string>> victims = {
      {"server-0"}, {"server-1"}, {"server-0", "server-1"}};
  for (int round = 0; round < (LongRun() ? 30 : 1); ++round) {
    job = WithCheckpoints(job, folder->path() + "/checkpoints-" + std::to_string(round));
    const uint64_t id = cluster.Submit(job);
    uint64_t at = 12;
    std::string story = "round " + std::to_string(round);
    for (int kills = 0; kills < 3; ++kills) {
      const JobStatus status = cluster.AwaitStep(id, at += random() % 10);
      if (kills == 0) CheckRowsBelow(cluster.folder());
      const auto& who = victims[random() % victims.size()];
      cluster.KillAndStart(who);
      for (const std::string& name : who) story += " " + std::to_string(status.step()) + ":" + name;
    }
    INFO(story);
    const JobStatus end = cluster.AwaitEnd(id);
    CheckSameModel(end, reference);
    CHECK(end.rollbacks() == 0);
    CheckNewest(cluster, job, reference);
  }
}

TEST_CASE("a server killed at each place where a tier is written", "[faults][p1][p3]") {
  const std::string tiers = GENERATE(as<std::string>{}, "rocksdb", "rowfile", "rowfile, HBM");
  const std::string ssd = tiers.substr(0, tiers.find(','));
  INFO(tiers);
  auto folder = ScratchFolder::Make("strata-fault");
  REQUIRE(folder.ok());
  TrainingJob job = TieredJob(folder->path(), 2);
  const JobStatus reference = Undisturbed(job);
  job = BelowDram(job, ssd);
  if (tiers != ssd) job = WithHbm(job);
  ProcessCluster cluster({.folder = folder->path() + "/cluster", .server_flags = SmallMemtables()});
  std::vector<std::string> points = {"tier.written=kill@90"};
  if (ssd == "rowfile") {
    points = {"tier.flush=kill@6", "tier.merge=kill@2", "tier.sync=kill@4", "tier.manifest=kill@5",
              "tier.committed=kill@7"};
  }
  for (const std::string& point : points) {
    INFO(point);
    job = WithCheckpoints(job, folder->path() + "/" + point.substr(0, point.find('=')));
    const uint64_t id = cluster.SubmitAndLose(job, "server-1", point);
    cluster.Start("server-1");
    const JobStatus end = cluster.AwaitEnd(id);
    CheckSameModel(end, reference);
    CHECK(end.rollbacks() == 0);
    CheckNewest(cluster, job, reference);
  }
}

}  // namespace
}  // namespace strata::testing

// A checkpoint of three shards on every number of shards, whatever boundaries they share.
#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "proto/runtime/files/manifest_io.h"
#include "proto/strata/checkpoint.pb.h"
#include "server/job/opening.h"
#include "server/table/memory.h"
#include "tests/server/job/bench.h"
#include "tests/server/shard/shard_fixture.h"
#include "tests/temp_folder.h"

namespace strata::server {
namespace {

// A plan that starts from a checkpoint of three files, made in `checkpoint`, of model hash `hash`.
JobPlan MakeCheckpoint(JobBench& bench, const std::string& checkpoint,
                       const storage::HashSum& hash) {
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  for (uint64_t step = 1; step <= 5; ++step) REQUIRE(bench.PushStep(8, step, {{0, 1}}).ok());
  REQUIRE(bench.Checkpoint(5, checkpoint) == hash);
  Manifest manifest;
  const ServerJobReport report = bench.service_.Find(JobId(1))->Report();
  for (const CheckpointFile& f : report.cuts(0).files()) *manifest.add_files() = f;
  REQUIRE(manifest.files_size() == 3);
  REQUIRE(WriteManifest(checkpoint, manifest).ok());
  JobPlan plan = bench.plan();
  plan.restore_from = checkpoint;
  plan.start_step = Step(5);
  return plan;
}

TEST_CASE("a checkpoint opens on any number of shards", "[service][cut]") {
  const auto references = References(8, 1, 5);
  TempFolder folder;
  JobBench bench(1);
  JobPlan plan = MakeCheckpoint(bench, folder.path() + "/checkpoint", references[5].Hash());
  for (uint32_t shards = 1; shards <= kPartitions; ++shards) {
    plan.shards.clear();
    for (uint32_t i = 0; i < shards; ++i) {
      const PartitionRange range = Ranges(shards)[i];
      const auto memory =
          DivideMemory(plan.tables, bench.First(range), bench.Last(range), 0, shards);
      REQUIRE(memory.ok());
      plan.shards.push_back({ShardId(i), range, *memory});
    }
    auto opened = OpenJob(plan, folder.path() + "/" + std::to_string(shards), &bench.timer_);
    INFO(opened.status());
    REQUIRE(opened.ok());
    for (const auto& shard : opened->shards) {
      INFO("shard " << shard->options().id.value << " of " << shards);
      CHECK(shard->Summarize()->hash ==
            references[5].Hash(shard->first_position(), shard->last_position()));
    }
  }
}

TEST_CASE("a checkpoint that is away is waited for, one that lacks a file is damaged",
          "[service][cut]") {
  TempFolder folder;
  const std::string checkpoint = folder.path() + "/checkpoint", away = folder.path() + "/away";
  JobBench bench(1);
  const JobPlan plan = MakeCheckpoint(bench, checkpoint, References(8, 1, 5)[5].Hash());
  const std::string root = folder.path() + "/server";

  std::filesystem::rename(checkpoint, away);
  const absl::Status missing = OpenJob(plan, root, &bench.timer_).status();
  CHECK(absl::IsUnavailable(missing));  // not one of those that are not tried again
  INFO(missing);
  CHECK(absl::StrContains(missing.message(), "checkpoint " + checkpoint + " is not there"));
  CHECK(absl::StrContains(missing.message(), "mount its share again"));
  std::filesystem::rename(away, checkpoint);
  CHECK(OpenJob(plan, root, &bench.timer_).ok());

  std::filesystem::remove_all(root);
  const Manifest manifest = *ReadManifest(checkpoint);
  const std::string file = checkpoint + "/" + manifest.files(1).name();
  std::filesystem::remove(file);
  const absl::Status damaged = OpenJob(plan, root, &bench.timer_).status();
  INFO(damaged);
  CHECK(absl::IsDataLoss(damaged));
  CHECK(absl::StrContains(damaged.message(), file));
}

}  // namespace
}  // namespace strata::server

// A checkpoint of three shards on every number of shards, whatever boundaries they share.
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>

#include "proto/runtime/base/timer.h"
#include "proto/runtime/files/manifest_io.h"
#include "proto/strata/checkpoint.pb.h"
#include "server/job/opening.h"
#include "server/table/memory.h"
#include "tests/server/job/bench.h"
#include "tests/server/shard/shard_fixture.h"
#include "tests/temp_folder.h"

namespace strata::server {
namespace {

TEST_CASE("a checkpoint opens on any number of shards", "[service][cut]") {
  const auto references = References(8, 1, 5);
  TempFolder folder;
  const std::string checkpoint = folder.path() + "/checkpoint";
  JobBench bench(1);
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  for (uint64_t step = 1; step <= 5; ++step) REQUIRE(bench.PushStep(8, step, {{0, 1}}).ok());
  REQUIRE(bench.Checkpoint(5, checkpoint) == references[5].Hash());
  Manifest manifest;
  const ServerJobReport report = bench.service_.Find(JobId(1))->Report();
  for (const CheckpointFile& f : report.cuts(0).files()) *manifest.add_files() = f;
  REQUIRE(manifest.files_size() == 3);
  REQUIRE(WriteManifest(checkpoint, manifest).ok());

  JobPlan plan = bench.plan();
  plan.restore_from = checkpoint;
  plan.start_step = Step(5);
  for (uint32_t shards = 1; shards <= kPartitions; ++shards) {
    plan.shards.clear();
    for (uint32_t i = 0; i < shards; ++i) {
      const PartitionRange range = Ranges(shards)[i];
      const auto memory =
          DivideMemory(plan.tables, bench.First(range), bench.Last(range), 0, shards);
      REQUIRE(memory.ok());
      plan.shards.push_back({ShardId(i), range, *memory});
    }
    auto opened = OpenJob(plan, folder.path() + "/" + std::to_string(shards), Timer::Real());
    INFO(opened.status());
    REQUIRE(opened.ok());
    for (const auto& shard : opened->shards) {
      INFO("shard " << shard->options().id.value << " of " << shards);
      CHECK(shard->Summarize()->hash ==
            references[5].Hash(shard->first_position(), shard->last_position()));
    }
  }
}

}  // namespace
}  // namespace strata::server

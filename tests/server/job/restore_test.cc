// A checkpoint of three shards on every number of shards, whatever boundaries they share.
#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "proto/runtime/files/manifest_io.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/control.pb.h"
#include "proto/wire/message_codec.h"
#include "server/job/opening.h"
#include "server/shard/shard.h"
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

TEST_CASE("a job starts from the checkpoint that is meant, and from no other in its folder",
          "[service][cut]") {
  TempFolder folder;
  const std::string checkpoint = folder.path() + "/checkpoint";
  JobBench bench(1);
  JobPlan plan = MakeCheckpoint(bench, checkpoint, References(8, 1, 5)[5].Hash());
  Manifest manifest = *ReadManifest(checkpoint);
  manifest.set_cluster_id(std::string(32, '1'));
  manifest.set_job_uid(std::string(32, '2'));
  manifest.set_generation(3);
  manifest.set_cut(4);
  manifest.set_step(5);
  manifest.set_model_hash(std::string(32, '6'));
  REQUIRE(WriteManifest(checkpoint, manifest).ok());
  CheckpointIdentity meant;
  meant.set_cluster_id(manifest.cluster_id());
  meant.set_job_uid(manifest.job_uid());
  meant.set_generation(3);
  meant.set_cut(4);
  meant.set_step(5);
  meant.set_model_hash(manifest.model_hash());
  int opened = 0;
  const auto open = [&](const CheckpointIdentity& wanted) {
    plan.restore = wanted;
    return OpenJob(plan, folder.path() + "/" + std::to_string(++opened), Timer::Real()).status();
  };
  CHECK(open(meant).ok());
  CheckpointIdentity other[6];
  for (CheckpointIdentity& o : other) o = meant;
  other[0].set_cluster_id(std::string(32, '7'));
  other[1].set_job_uid(std::string(32, '7'));
  other[2].set_generation(2);
  other[3].set_cut(7);
  other[4].set_model_hash(std::string(32, '7'));
  other[5].set_step(6);
  for (const CheckpointIdentity& o : other) {
    const absl::Status refused = open(o);
    INFO(refused);
    CHECK(absl::IsDataLoss(refused));
    CHECK(absl::StrContains(refused.message(), checkpoint + " is of job " + manifest.job_uid()));
    CHECK(absl::StrContains(refused.message(), "to start from that of job " + o.job_uid()));
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

// spec.model.initFrom: else the first windows of each task would count as done, and cuts up to the
// other job's as taken.
TEST_CASE("of another job's checkpoint an asynchronous job takes the rows alone",
          "[service][async][cut]") {
  TempFolder folder;
  const std::string checkpoint = folder.path() + "/checkpoint";
  JobBench bench(1, /*synchronous=*/false);
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  REQUIRE(bench.Call(DataMethod::kPush, bench.PushMessage(8, 1, {{0, 1}}, {}))->value().ok());
  const auto job = bench.service_.Find(JobId(1));
  ServerJobDirective d;
  d.set_map_epoch(5);
  Manifest manifest;
  for (const uint64_t cut : {1, 2}) {  // a file names the cut before its own as taken
    d.clear_cuts();
    d.add_cuts()->set_cut(cut);
    d.mutable_cuts(0)->set_directory(checkpoint);
    job->Follow(d);
    wire::MarkRequest mark;
    mark.header = bench.header();
    mark.sequence = bench.NextSequence();
    mark.cut = cut;
    REQUIRE(bench.Call(DataMethod::kMark, wire::EncodeMarkRequest(mark))->value().ok());
    bench.pool_.RunAll();
    const ServerJobReport report = job->Report();
    REQUIRE(report.cuts(0).state() == CutReport::DONE);
    *manifest.mutable_files() = report.cuts(0).files();
  }
  REQUIRE(WriteManifest(checkpoint, manifest).ok());
  const bool own = GENERATE(true, false);
  JobPlan plan = bench.plan();
  plan.restore_from = checkpoint;
  if (own) plan.restore.emplace();
  auto opened = OpenJob(plan, folder.path() + "/opened", Timer::Real());
  INFO(opened.status());
  REQUIRE(opened.ok());
  uint64_t rows = 0;
  for (const auto& shard : opened->shards) {
    rows += shard->counters().rows;
    CHECK(shard->clock() == Step(own ? 1 : 0));
    CHECK(shard->barrier().taken() == (own ? 1 : 0));
    ShardUpdate update;
    update.tables.resize(plan.tables.size());
    const auto result = shard->ApplyWindow(TaskId(0), 0, LaneId(0), std::move(update));
    REQUIRE(result.ok());
    CHECK(*result == (own ? Shard::WindowResult::kRepeated : Shard::WindowResult::kApplied));
  }
  CHECK(rows > 0);
}

}  // namespace
}  // namespace strata::server

// A checkpoint of three shards on every number of shards, whatever boundaries they share.
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "proto/core/ids.h"
#include "proto/core/position.h"
#include "proto/core/table_spec.h"
#include "proto/runtime/files/manifest_io.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "proto/wire/message_codec.h"
#include "server/job/opening.h"
#include "server/job/plan.h"
#include "server/shard/shard.h"
#include "server/table/memory.h"
#include "storage/checkpoint/shard_file.h"
#include "storage/row/hash.h"
#include "storage/row/layout.h"
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
  plan.restore.emplace();  // as its manifest says: nobody
  plan.start_step = Step(5);
  return plan;
}

// What takes every row as it is, where the tables are the same.
RestorePlan AllRows(const JobPlan& plan) {
  RestorePlan all;
  for (const TableSpec& table : plan.tables) {
    if (table.kind == TableKind::kHashed) {
      RestoreTable* t = all.add_tables();
      t->set_from(table.id.value);
      t->set_to(table.id.value);
    }
    for (const TensorSpec& tensor : table.tensors) {
      RestoreTensor* t = all.add_tensors();
      t->set_from_row(tensor.first.value);
      t->set_to_row(tensor.first.value);
      t->set_rows(tensor.Rows(table.dim()));
    }
  }
  return all;
}

// Makes the plan one of so many shards, without a limit.
void Divide(const JobBench& bench, uint32_t shards, JobPlan& plan) {
  plan.shards.clear();
  for (uint32_t i = 0; i < shards; ++i) {
    const PartitionRange range = Ranges(shards)[i];
    const auto memory = DivideMemory(plan.tables, bench.First(range), bench.Last(range), 0, shards);
    REQUIRE(memory.ok());
    plan.shards.push_back({ShardId(i), range, *memory});
  }
}

TEST_CASE("a checkpoint opens on any number of shards", "[service][cut]") {
  const auto references = References(8, 1, 5);
  TempFolder folder;
  JobBench bench(1);
  JobPlan plan = MakeCheckpoint(bench, folder.path() + "/checkpoint", references[5].Hash());
  for (uint32_t shards = 1; shards <= kPartitions; ++shards) {
    Divide(bench, shards, plan);
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
  const bool own = GENERATE(true, false);
  INFO("own " << own);
  int opened = 0;
  const auto open = [&](const CheckpointIdentity& wanted) {
    // The job's own, or another one's (spec.model.initFrom) by the plan that was made for it.
    plan.restore.reset();
    if (own) plan.restore = wanted;
    plan.restore_plan = AllRows(plan);
    if (!own) *plan.restore_plan.mutable_checkpoint() = wanted;
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
    CHECK(absl::StrContains(refused.message(), checkpoint + " is of job " + manifest.job_uid()));
    // No other reader would find anything else in the folder of another job.
    CHECK(refused.code() ==
          (own ? absl::StatusCode::kDataLoss : absl::StatusCode::kFailedPrecondition));
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
  if (!own) plan.restore_plan = AllRows(plan);
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

// Rows that a shard of `to` is to hold of a checkpoint: the sum of their hashes.
storage::HashSum Expected(const std::string& checkpoint, const std::vector<TableSpec>& from,
                          const std::vector<TableSpec>& to, bool reset, bool keep_score = false) {
  storage::HashSum sum;
  const Manifest manifest = *ReadManifest(checkpoint);
  for (const CheckpointFile& f : manifest.files()) {
    const auto file = *storage::ShardFileReader::Open(checkpoint + "/" + f.name());
    for (size_t t = 0; t < from.size(); ++t) {
      const storage::RowLayout before = storage::RowLayout::For(from[t]);
      const storage::RowLayout now = storage::RowLayout::For(to[t]);
      const auto key_of = [&](Position p) -> std::optional<Key> {
        if (from[t].kind == TableKind::kHashed) return from[t].KeyAtPosition(p);
        for (size_t i = 0; i < from[t].tensors.size() && i < to[t].tensors.size(); ++i) {
          const uint64_t row = p.value - from[t].tensors[i].first.value;
          if (p >= from[t].tensors[i].first && row < from[t].tensors[i].Rows(from[t].dim())) {
            return Key(to[t].tensors[i].first.value + row);
          }
        }
        return std::nullopt;
      };
      const auto add = [&](std::span<const Position> positions, const uint8_t* rows) {
        for (size_t i = 0; i < positions.size(); ++i, rows += before.row_bytes()) {
          const auto key = key_of(positions[i]);
          if (!key) continue;
          std::vector<uint8_t> row(now.row_bytes());
          storage::InitialRow(to[t], now, 1, *key, row.data());
          std::memcpy(row.data(), rows, size_t{now.dim} * 4);
          if (!reset) std::memcpy(row.data(), rows, before.meta_offset());
          if (keep_score && now.scored) {
            std::memcpy(row.data() + now.score_offset(), rows + before.meta_offset() - 4, 4);
          }
          std::memcpy(row.data() + now.meta_offset(), rows + before.meta_offset(), 8);
          // So many steps before the job's first.
          uint32_t last_step = 0;
          std::memcpy(&last_step, row.data() + now.meta_offset(), sizeof last_step);
          last_step -= static_cast<uint32_t>(file->header().clock.value);
          std::memcpy(row.data() + now.meta_offset(), &last_step, sizeof last_step);
          sum += storage::HashRow(to[t].id, *key, row);
        }
        return absl::OkStatus();
      };
      REQUIRE(file->ReadRows(from[t].id, file->header().partitions, add).ok());
    }
  }
  return sum;
}

// spec.model.initFrom: rows go where the table and the tensors of their names lie now.
TEST_CASE("rows of another job's checkpoint move with their tables and tensors", "[service][cut]") {
  TempFolder folder;
  const std::string checkpoint = folder.path() + "/checkpoint";
  JobBench bench(1);
  JobPlan plan = MakeCheckpoint(bench, checkpoint, References(8, 1, 5)[5].Hash());
  plan.restore.reset();
  plan.start_step = Step(0);
  const std::vector<TableSpec> before = plan.tables;
  plan.restore_plan = AllRows(plan);
  const bool renumbered = GENERATE(false, true), reset = GENERATE(false, true);
  INFO("renumbered " << renumbered << ", reset " << reset);
  if (renumbered) {
    plan.tables[0].id = TableId(2);
    plan.restore_plan.mutable_tables(0)->set_to(2);
  }
  if (reset) {
    plan.tables[0].segments[0].optimizer.type = OptimizerType::kAdagrad;
    plan.tables[0].segments[0].optimizer.initial_accumulator = 0.5f;
    plan.tables[1].segments[0].optimizer.type = OptimizerType::kMomentum;
    plan.restore_plan.mutable_tables(0)->set_reset_state(true);
    for (RestoreTensor& t : *plan.restore_plan.mutable_tensors()) t.set_reset_state(true);
  }
  // The tensors change places, and one of another shape comes between: nothing is loaded as it.
  std::vector<TensorSpec>& tensors = plan.tables[1].tensors;
  std::swap(tensors[0].first, tensors[1].first);
  plan.restore_plan.mutable_tensors(0)->set_to_row(tensors[0].first.value);
  plan.restore_plan.mutable_tensors(1)->set_to_row(tensors[1].first.value);
  const storage::HashSum expected = Expected(checkpoint, before, plan.tables, reset);
  std::swap(tensors[0], tensors[1]);                          // ascending by place
  if (renumbered) std::swap(plan.tables[0], plan.tables[1]);  // and tables by number
  for (const uint32_t shards : {1u, 3u, 16u}) {
    Divide(bench, shards, plan);
    auto opened = OpenJob(plan, folder.path() + "/" + std::to_string(shards), &bench.timer_);
    INFO(opened.status());
    REQUIRE(opened.ok());
    storage::HashSum sum;
    for (const auto& shard : opened->shards) {
      CHECK(shard->clock() == Step(0));
      sum += shard->Summarize()->hash;
    }
    CHECK(sum == expected);
  }
}

// The last float of what the file has beside the weights stands for the score here.
TEST_CASE("rows keep their score where the optimizers' state begins anew", "[service][cut]") {
  TempFolder folder;
  const std::string checkpoint = folder.path() + "/checkpoint";
  JobBench bench(1);
  JobPlan plan = MakeCheckpoint(bench, checkpoint, References(8, 1, 5)[5].Hash());
  plan.restore.reset();
  plan.start_step = Step(0);
  const std::vector<TableSpec> before = plan.tables;
  plan.restore_plan = AllRows(plan);
  plan.tables[0].life_cycle.removal.scored = true;
  const bool other = GENERATE(false, true), keep = GENERATE(false, true);
  INFO("another optimizer " << other << ", keep " << keep);
  if (other) plan.tables[0].segments[0].optimizer.type = OptimizerType::kAdagrad;
  plan.restore_plan.mutable_tables(0)->set_reset_state(true);
  plan.restore_plan.mutable_tables(0)->set_keep_score(keep);
  for (RestoreTensor& t : *plan.restore_plan.mutable_tensors()) t.set_reset_state(true);
  for (ShardPlan& shard : plan.shards) {
    shard.memory = *DivideMemory(plan.tables, bench.First(shard.range), bench.Last(shard.range), 0,
                                 static_cast<uint32_t>(plan.shards.size()));
  }
  auto opened = OpenJob(plan, folder.path() + "/x", &bench.timer_);
  INFO(opened.status());
  REQUIRE(opened.ok());
  storage::HashSum sum;
  for (const auto& shard : opened->shards) sum += shard->Summarize()->hash;
  CHECK(sum == Expected(checkpoint, before, plan.tables, /*reset=*/true, keep));
  CHECK((sum == Expected(checkpoint, before, plan.tables, true, !keep)) == false);
}

TEST_CASE("a table whose rows have another size is not read", "[service][cut]") {
  TempFolder folder;
  const std::string checkpoint = folder.path() + "/checkpoint";
  JobBench bench(1);
  JobPlan plan = MakeCheckpoint(bench, checkpoint, References(8, 1, 5)[5].Hash());
  plan.restore.reset();
  plan.restore_plan = AllRows(plan);
  SECTION("weights") { plan.tables[0].segments[0].dim = 8; }
  SECTION("state") { plan.tables[0].segments[1].optimizer.type = OptimizerType::kAdam; }
  for (ShardPlan& shard : plan.shards) {
    shard.memory = *DivideMemory(plan.tables, bench.First(shard.range), bench.Last(shard.range), 0,
                                 static_cast<uint32_t>(plan.shards.size()));
  }
  const absl::Status refused = OpenJob(plan, folder.path() + "/x", &bench.timer_).status();
  INFO(refused);
  CHECK(absl::IsFailedPrecondition(refused));
  CHECK(absl::StrContains(refused.message(), "rows of table features have another size"));
}

// An adopted job's records do not say what it took; what servers kept of it is whole without.
TEST_CASE("of a checkpoint of which nothing says what to take nothing is read", "[service][cut]") {
  ServerJobDirective directive;
  directive.set_cluster_id(std::string(32, '1'));
  directive.set_job_uid(std::string(32, '2'));
  directive.set_generation(1);
  TrainingJob& job = *directive.mutable_spec();
  job.set_api_version("strata/v1");
  job.set_kind("TrainingJob");
  job.mutable_metadata()->set_name("j");
  job.mutable_spec()->mutable_data()->set_format("libfm");
  job.mutable_spec()->mutable_data()->add_train("/a");
  job.mutable_spec()->mutable_model()->set_type("lr");
  directive.mutable_shape()->set_fields(3);
  directive.set_restore_from("/old");
  const bool was_open = GENERATE(false, true), told = GENERATE(false, true);
  const bool own = GENERATE(false, true);
  INFO("was open " << was_open << ", told " << told << ", own " << own);
  directive.set_was_open(was_open);
  if (told) directive.mutable_restore_plan();
  if (own) directive.mutable_restore();
  const absl::Status s = PlanJob(directive).status();
  INFO(s);
  const bool refused = absl::StrContains(s.message(), "nothing says what it takes of it");
  CHECK(refused == (!was_open && !told && !own));
  CHECK(refused == !s.ok());
}

}  // namespace
}  // namespace strata::server

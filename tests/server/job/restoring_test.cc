// How old rows of another job's checkpoint are in a job that counts its steps from 0, and how far
// its optimizers have counted.
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/core/ids.h"
#include "proto/core/partition.h"
#include "proto/core/table_spec.h"
#include "proto/strata/checkpoint.pb.h"
#include "server/job/opening.h"
#include "server/job/plan.h"
#include "server/shard/earlier_commits.h"
#include "server/shard/shard.h"
#include "server/snapshot/shard_snapshot.h"
#include "storage/checkpoint/shard_file.h"
#include "storage/row/layout.h"
#include "tests/server/job/another_checkpoint.h"
#include "tests/temp_folder.h"

namespace strata::server {
namespace {

using storage::StepOf;

// A checkpoint of a shard, as a file.
std::unique_ptr<storage::ShardFileReader> Read(const std::string& path,
                                               absl::StatusOr<std::unique_ptr<ShardSnapshot>> of) {
  REQUIRE(of.ok());
  REQUIRE(WriteSnapshot(**of, path).ok());
  auto file = storage::ShardFileReader::Open(path);
  REQUIRE(file.ok());
  return *std::move(file);
}

// What each shard writes into its checkpoints of a table's commits before the job.
std::vector<uint64_t> Earlier(const TempFolder& temp, const OpenedJob& job,
                              TableId table = TableId(0)) {
  std::vector<uint64_t> all;
  for (const auto& shard : job.shards) {
    const auto file = Read(absl::StrCat(temp.path(), "/earlier-", shard->options().id.value),
                           shard->SnapshotCheckpoint({.cut = shard->clock()}));
    const auto commits = ReadEarlierCommits(*file);
    REQUIRE(commits.ok());
    all.push_back(commits->empty() ? 0 : commits->at(table));
  }
  return all;
}

// Whether each shard's second checkpoint is an increment on its first.
std::vector<bool> Increments(const TempFolder& temp, const OpenedJob& job) {
  std::vector<bool> all;
  for (const auto& shard : job.shards) {
    Read(absl::StrCat(temp.path(), "/full-", shard->options().id.value),
         shard->SnapshotCheckpoint({.cut = Step(0), .follow = true, .number = 1}));
  }
  PassSteps(job, 1, 1);
  for (const auto& shard : job.shards) {
    const auto second = shard->SnapshotCheckpoint(
        {.cut = Step(1), .base = Step(0), .follow = true, .number = 2, .base_number = 1});
    REQUIRE(second.ok());
    all.push_back((*second)->is_increment());
  }
  return all;
}

TEST_CASE("rows of another job's checkpoint are removed when the job's own steps say so",
          "[restoring]") {
  const TempFolder temp;
  TableSpec table = OneWeight(false);
  WriteAnother(temp.path() + "/c",
               {{.clock = 1000, .rows = {{1, {1.0f, 0, {1000, 5}}}, {2, {2.0f, 0, {17, 5}}}}}},
               {table});
  table.life_cycle.removal.ttl_steps = 3;
  table.life_cycle.removal.every_steps = 1;
  const OpenedJob job = OpenFrom(temp, temp.path() + "/c", {table});
  CHECK(RowsOf(temp, job, table).size() == 2);
  PassSteps(job, 1, 1);  // key 2 was idle for longer than that before the job began
  CHECK(RowsOf(temp, job, table).size() == 1);
  PassSteps(job, 2, 3);
  CHECK(RowsOf(temp, job, table).count(1) == 1);
  PassSteps(job, 4, 4);
  CHECK(RowsOf(temp, job, table).empty());
}

TEST_CASE("rows age on from job to job, also through one whose tables have no rule",
          "[restoring]") {
  const TempFolder temp;
  const TableSpec dense = OneTensor(3);
  TableSpec table = OneWeight(false);
  WriteAnother(temp.path() + "/0",
               {{.clock = 1000,
                 .rows = {{1, {1.0f, 0, {990, 5}}}, {2, {2.0f, 0, {1000, 5}}}},
                 .dense = {{0, {3.0f, 0, {995, 5}}}}}},
               {table, dense});
  const bool rule = GENERATE(false, true);
  INFO("a rule on the second day " << rule);
  if (rule) table.life_cycle.removal.ttl_steps = 1000;  // which looks at no row before
  OpenedJob job = OpenFrom(temp, temp.path() + "/0", {table, dense});
  PassSteps(job, 1, 7);
  const AnotherRows rows = RowsOf(temp, job, table), tensor = RowsOf(temp, job, dense);
  CHECK(StepOf(rows.at(1).meta.last_step) == -10);
  CHECK(StepOf(rows.at(2).meta.last_step) == 0);
  CHECK(rows.at(1).meta.updates == 5);
  CHECK(rows.at(1).weight == 1.0f);
  CHECK(StepOf(tensor.at(0).meta.last_step) == -5);
  WriteAnother(temp.path() + "/1", {{.clock = 7, .rows = rows, .dense = tensor}}, {table, dense});
  // The third day's rule knows how old rows are.
  const TempFolder next;
  table.life_cycle.removal.ttl_steps = 12;
  table.life_cycle.removal.every_steps = 1;
  job = OpenFrom(next, temp.path() + "/1", {table, dense});
  CHECK(StepOf(RowsOf(next, job, table).at(1).meta.last_step) == -17);
  CHECK(StepOf(RowsOf(next, job, table).at(2).meta.last_step) == -7);
  PassSteps(job, 1, 5);
  CHECK(RowsOf(next, job, table).count(1) == 0);
  CHECK(RowsOf(next, job, table).count(2) == 1);
  PassSteps(job, 6, 6);
  CHECK(RowsOf(next, job, table).empty());
}

TEST_CASE("rows that were idle for more steps than a row can say are as old as it can",
          "[restoring]") {
  constexpr int64_t kOldest = -((int64_t{1} << 31) - 1);
  TableSpec table = OneWeight(false);
  const bool by_clock = GENERATE(false, true);
  INFO("in one job " << by_clock);
  // Touched so many steps before the checkpoint's job, or long ago in it.
  const uint64_t clock = by_clock ? (uint64_t{1} << 31) + 50 : 100;
  const uint32_t last_step = by_clock ? 3 : 0u - ((1u << 31) - 50);
  AnotherRows rows = {{1, {1.0f, 0, {last_step, 5}}}};
  for (int day = 0; day < 2; ++day) {
    const TempFolder temp;
    WriteAnother(temp.path() + "/c", {{.clock = day == 0 ? clock : 7, .rows = rows}}, {table});
    OpenedJob job = OpenFrom(temp, temp.path() + "/c", {table});
    rows = RowsOf(temp, job, table);
    CHECK(StepOf(rows.at(1).meta.last_step) == kOldest);
    PassSteps(job, 1, 7);
  }
  const TempFolder temp;
  table.life_cycle.removal.ttl_steps = 1000;
  table.life_cycle.removal.every_steps = 1;
  WriteAnother(temp.path() + "/c", {{.clock = 7, .rows = rows}}, {table});
  OpenedJob job = OpenFrom(temp, temp.path() + "/c", {table});
  PassSteps(job, 1, 1);
  CHECK(RowsOf(temp, job, table).empty());
}

// Lists of changes and snapshots go by steps, which must not be those of the checkpoint's job.
TEST_CASE("checkpoints of a job that took another one's rows are increments, too", "[restoring]") {
  const TempFolder temp;
  TableSpec table = OneWeight(false);
  const TableSpec dense = OneTensor(3);
  const bool rule = GENERATE(false, true), tensor = GENERATE(false, true);
  INFO("a rule " << rule << ", a tensor with rows " << tensor);
  AnotherFile file = {.clock = 1000};
  for (uint32_t key = 1; key <= 20; ++key) file.rows[key] = {1.0f, 0, {900 + key, 5}};
  if (tensor) file.dense = {{0, {3.0f, 0, {995, 5}}}};
  WriteAnother(temp.path() + "/c", {file}, {table, dense});
  if (rule) table.life_cycle.removal.ttl_steps = 1000;
  const OpenedJob job = OpenFrom(temp, temp.path() + "/c", {table, dense});
  for (const auto& shard : job.shards) REQUIRE(shard->RowsOf(0) > 0);
  CHECK(Increments(temp, job) == std::vector<bool>{true, true});
}

TableSpec AdamTable() {
  TableSpec table = OneWeight(false);
  table.segments[0].optimizer.type = OptimizerType::kAdam;
  return table;
}

TEST_CASE("Adam counts on behind the jobs that its state comes from", "[restoring]") {
  const TempFolder temp;
  const std::string checkpoint = temp.path() + "/c";
  TableSpec table = AdamTable();
  SECTION("of bsp and the jobs before") {
    WriteAnother(checkpoint, {{.clock = 100, .earlier = 50}}, {table});
    JobPlan plan = PlanFrom(checkpoint, {table});
    plan.logged = true;
    OpenedJob job = OpenFrom(temp, plan);
    CHECK(Earlier(temp, job) == std::vector<uint64_t>{150, 150});
    // A restart reads its images, and nothing of the checkpoint.
    job = OpenedJob();
    plan.was_open = true;
    plan.restore_from.clear();
    plan.restore_plan.Clear();
    job = OpenFrom(temp, plan);
    CHECK(job.recovered);
    CHECK(Earlier(temp, job) == std::vector<uint64_t>{150, 150});
  }
  SECTION("of windows: those of the shard that applied the most, on every shard") {
    const uint64_t first = GENERATE(70, 95);
    INFO("windows of the first shard " << first);
    WriteAnother(
        checkpoint,
        {{.clock = 3, .applied = first, .range = {PartitionId(0), PartitionId(1)}},
         {.clock = 3, .applied = 80, .earlier = 5, .range = {PartitionId(2), PartitionId(3)}}},
        {table});
    const uint64_t most = first == 70 ? 85 : 95;
    CHECK(Earlier(temp, OpenFrom(temp, checkpoint, {table})) == std::vector<uint64_t>{most, most});
  }
  SECTION("of the newest increment") {
    WriteAnother(checkpoint,
                 {{.clock = 2, .applied = 20, .earlier = 5},
                  {.clock = 3, .base = 2, .applied = 70, .earlier = 5},
                  {.clock = 4, .base = 3, .applied = 90, .earlier = 5}},
                 {table});
    CHECK(Earlier(temp, OpenFrom(temp, checkpoint, {table})) == std::vector<uint64_t>{95, 95});
  }
  SECTION("of a table that has another number now") {
    WriteAnother(checkpoint, {{.clock = 100, .earlier = 50}}, {table});
    table.id = TableId(2);
    JobPlan plan = PlanFrom(checkpoint, {table});
    plan.restore_plan.mutable_tables(0)->set_to(2);
    CHECK(Earlier(temp, OpenFrom(temp, plan), table.id) == std::vector<uint64_t>{150, 150});
  }
  SECTION("of tensors, and not of the other table, which has no Adam") {
    TableSpec dense = OneTensor(3);
    dense.segments[0].optimizer.type = OptimizerType::kAdam;
    table = OneWeight(false);
    WriteAnother(checkpoint, {{.clock = 100, .earlier = 50}}, {table, dense});
    JobPlan plan = PlanFrom(checkpoint, {table, dense});
    const OpenedJob job = OpenFrom(temp, plan);
    CHECK(Earlier(temp, job, dense.id) == std::vector<uint64_t>{150, 150});
    CHECK(Earlier(temp, job) == std::vector<uint64_t>{0, 0});
    const TempFolder other;
    plan.restore_plan.mutable_tensors(0)->set_reset_state(true);
    CHECK(Earlier(other, OpenFrom(other, plan), dense.id) == std::vector<uint64_t>{0, 0});
  }
  SECTION("not where the state begins anew, nor without Adam") {
    WriteAnother(checkpoint, {{.clock = 100, .earlier = 50}}, {table});
    JobPlan plan = PlanFrom(checkpoint, {table});
    plan.restore_plan.mutable_tables(0)->set_reset_state(true);
    CHECK(Earlier(temp, OpenFrom(temp, plan)) == std::vector<uint64_t>{0, 0});
    const TempFolder other;
    table = OneWeight(false);
    WriteAnother(other.path() + "/c", {{.clock = 100}}, {table});
    CHECK(Earlier(other, OpenFrom(other, other.path() + "/c", {table})) ==
          std::vector<uint64_t>{0, 0});
  }
  SECTION("and a job that resumes from a checkpoint of its own goes on so") {
    WriteAnother(checkpoint, {{.clock = 100, .earlier = 50}}, {table});
    JobPlan plan = PlanFrom(checkpoint, {table});
    plan.restore.emplace();
    plan.start_step = Step(100);
    CHECK(Earlier(temp, OpenFrom(temp, plan)) == std::vector<uint64_t>{50, 50});
  }
}

TEST_CASE("rows of another job's checkpoint keep their scores as they were at its step",
          "[restoring]") {
  const TempFolder temp;
  const TableSpec table = OneWeight(true);
  // Key 1 is as it was at the full checkpoint, and decays until the increment.
  const AnotherRows first = {{1, {1.0f, 8.0f, {5, 3}}}, {2, {2.0f, 8.0f, {20, 3}}}};
  const AnotherRows second = {{2, {2.5f, 9.0f, {38, 4}}}, {3, {3.0f, 6.0f, {40, 1}}}};
  const bool synchronous = GENERATE(true, false);
  INFO("synchronous " << synchronous);
  if (synchronous) {
    WriteAnother(temp.path() + "/c",
                 {{.clock = 20, .rows = first}, {.clock = 40, .base = 20, .rows = second}},
                 {table});
  } else {
    WriteAnother(temp.path() + "/c",
                 {{.clock = 1, .applied = 20, .rows = first},
                  {.clock = 2, .base = 1, .applied = 40, .rows = second}},
                 {table});
  }
  const OpenedJob job = OpenFrom(temp, temp.path() + "/c", {table});
  AnotherRows rows = RowsOf(temp, job, table);
  REQUIRE(rows.size() == 3);
  for (auto& [key, row] : rows) {
    INFO("key " << key);
    CHECK(StepOf(row.meta.last_step) == (key == 1 ? 5 : key == 2 ? 38 : 40) - 40);
    CHECK(row.meta.updates == (key == 1 ? 3 : key == 2 ? 4 : 1));
  }
  CHECK(rows[1].weight == 1.0f);
  CHECK(rows[2].weight == 2.5f);
  CHECK(rows[1].score == 0.5f);  // 8 halved at 10, 20, 30 and 40
  CHECK(rows[2].score == 4.5f);  // 9 halved at 40
  CHECK(rows[3].score == 6.0f);
}

}  // namespace
}  // namespace strata::server

// How old rows of another job's checkpoint are in a job that counts its steps from 0, and how far
// its optimizers have counted.
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/core/ids.h"
#include "proto/core/partition.h"
#include "proto/core/position.h"
#include "proto/core/table_spec.h"
#include "proto/core/uid.h"
#include "proto/runtime/base/timer.h"
#include "proto/runtime/files/manifest_io.h"
#include "proto/strata/checkpoint.pb.h"
#include "server/job/opening.h"
#include "server/job/plan.h"
#include "server/shard/earlier_commits.h"
#include "server/shard/file_sections.h"
#include "server/shard/shard.h"
#include "server/snapshot/shard_snapshot.h"
#include "server/table/memory.h"
#include "storage/checkpoint/shard_file.h"
#include "storage/row/layout.h"
#include "tests/temp_folder.h"

namespace strata::server {
namespace {

constexpr uint32_t kPartitions = 4;
const JobIdentity kWriter{{1, 1}, {2, 2}};
const PartitionRange kAll{PartitionId(0), PartitionId(kPartitions - 1)};

// Rows of one weight and, where they have one, a score.
TableSpec Table(bool scored) {
  TableSpec table;
  table.id = TableId(0);
  table.name = "features";
  table.segments = {{"weight", 1, {}, {}}};
  table.life_cycle.removal.scored = scored;
  table.life_cycle.removal.decay = 0.5f;
  table.life_cycle.removal.decay_steps = 10;
  return table;
}

struct Row {
  float weight = 0;
  float score = 0;
  storage::RowMeta meta;
};

std::vector<uint8_t> Bytes(const Row& row, bool scored) {
  std::vector<uint8_t> bytes(scored ? 16 : 12);
  std::memcpy(bytes.data(), &row.weight, 4);
  if (scored) std::memcpy(bytes.data() + 4, &row.score, 4);
  std::memcpy(bytes.data() + bytes.size() - 8, &row.meta, 8);
  return bytes;
}

// A file of a checkpoint. `applied`: the windows that an asynchronous job's shard had applied,
// whose files say the number of the cut where those of bsp say the step.
struct File {
  uint64_t clock = 0;
  uint64_t base = 0;  // an increment, on the file of that clock
  uint64_t applied = 0;
  uint64_t earlier = 0;  // commits of jobs before that one
  PartitionRange range = kAll;
  std::map<uint64_t, Row> rows;  // by key
};

void Write(const std::string& path, const File& file, const TableSpec& table) {
  storage::ShardFileHeader header;
  header.kind =
      file.base > 0 ? storage::ShardFileKind::kIncrement : storage::ShardFileKind::kCheckpoint;
  header.job = JobId(1);
  header.generation = Generation(1);
  header.identity = kWriter;
  header.cut = file.clock;
  header.base_cut = file.base;
  header.base = Step(file.base);
  header.partitioning = Partitioning(kPartitions);
  header.partitions = file.range;
  header.clock = Step(file.clock);
  const storage::RowLayout layout = storage::RowLayout::For(table);
  header.tables = {{table.id, table.kind, layout.dim, layout.state_floats}};
  auto writer = storage::ShardFileWriter::Create(path, header);
  INFO(writer.status());
  REQUIRE(writer.ok());
  std::map<Position, Row> sorted;
  for (const auto& [key, row] : file.rows) sorted[table.PositionOfKey(Key(key))] = row;
  for (const auto& [position, row] : sorted) {
    REQUIRE((*writer)->AddRow(table.id, position, Bytes(row, table.life_cycle.scored())).ok());
  }
  if (file.applied > 0) {
    const uint64_t counters[2] = {file.applied, file.clock};
    std::vector<uint8_t> bytes(sizeof counters);
    std::memcpy(bytes.data(), counters, sizeof counters);
    REQUIRE((*writer)->AddSection({kCountersSection, file.range, bytes}).ok());
  }
  if (file.earlier > 0) {
    const std::vector<uint8_t> bytes = EncodeEarlierCommits({file.earlier});
    REQUIRE((*writer)->AddSection({kEarlierSection, file.range, bytes}).ok());
  }
  REQUIRE((*writer)->Finish().ok());
}

// A checkpoint of `files`; increments follow the one before them.
void WriteCheckpoint(const std::string& folder, const std::vector<File>& files,
                     const TableSpec& table) {
  Manifest manifest;
  for (const File& file : files) {
    CheckpointFile* f = manifest.add_files();
    f->set_name(absl::StrCat("part-", manifest.files_size(), ".strata"));
    f->set_first_partition(file.range.first.value);
    f->set_last_partition(file.range.last.value);
    f->set_sequence(file.base > 0 ? static_cast<uint32_t>(manifest.files_size() - 1) : 0);
    f->set_cluster_id(kWriter.cluster.text());
    f->set_job_uid(kWriter.job.text());
    f->set_generation(1);
    f->set_cut(file.clock);
  }
  REQUIRE(WriteManifest(folder, manifest).ok());
  for (size_t i = 0; i < files.size(); ++i) {
    Write(absl::StrCat(folder, "/", manifest.files(static_cast<int>(i)).name()), files[i], table);
  }
}

// A job of `table` on two shards that takes all rows of the checkpoint.
JobPlan Plan(const std::string& checkpoint, const TableSpec& table) {
  JobPlan plan;
  plan.job = JobId(2);
  plan.identity = {{1, 1}, {3, 3}};
  plan.generation = Generation(1);
  plan.tables = {table};
  plan.partitioning = Partitioning(kPartitions);
  plan.logged = false;
  for (uint32_t i = 0; i < 2; ++i) {
    const PartitionRange range{PartitionId(2 * i), PartitionId((2 * i) + 1)};
    auto memory = DivideMemory(plan.tables, plan.partitioning.First(range.first),
                               plan.partitioning.Last(range.last), 0, 2);
    REQUIRE(memory.ok());
    plan.shards.push_back({ShardId(i), range, *memory});
  }
  plan.restore_from = checkpoint;
  plan.restore_plan.add_tables();  // 0 to 0
  return plan;
}

OpenedJob Open(const TempFolder& temp, const JobPlan& plan) {
  auto opened = OpenJob(plan, temp.path() + "/server", Timer::Real());
  INFO(opened.status());
  REQUIRE(opened.ok());
  return *std::move(opened);
}
OpenedJob Open(const TempFolder& temp, const std::string& checkpoint, const TableSpec& table) {
  return Open(temp, Plan(checkpoint, table));
}

// A checkpoint of a shard, as a file.
std::unique_ptr<storage::ShardFileReader> Read(const std::string& path,
                                               absl::StatusOr<std::unique_ptr<ShardSnapshot>> of) {
  REQUIRE(of.ok());
  REQUIRE(WriteSnapshot(**of, path).ok());
  auto file = storage::ShardFileReader::Open(path);
  REQUIRE(file.ok());
  return *std::move(file);
}

// What each shard writes into its checkpoints of the commits before the job.
std::vector<uint64_t> Earlier(const TempFolder& temp, const OpenedJob& job) {
  std::vector<uint64_t> all;
  for (const auto& shard : job.shards) {
    const auto file = Read(absl::StrCat(temp.path(), "/earlier-", shard->options().id.value),
                           shard->SnapshotCheckpoint({.cut = shard->clock()}));
    const auto commits = ReadEarlierCommits(*file);
    REQUIRE(commits.ok());
    all.push_back(commits->empty() ? 0 : commits->at(TableId(0)));
  }
  return all;
}

// What the shards hold, by key, as their checkpoint has it.
std::map<uint64_t, Row> Rows(const TempFolder& temp, const OpenedJob& job, const TableSpec& table) {
  const bool scored = table.life_cycle.scored();
  std::map<uint64_t, Row> all;
  for (const auto& shard : job.shards) {
    const std::string path = absl::StrCat(temp.path(), "/out-", shard->options().id.value);
    REQUIRE(shard->WriteCheckpoint(path, shard->clock()).ok());
    const auto file = storage::ShardFileReader::Open(path);
    REQUIRE(file.ok());
    const auto add = [&](std::span<const Position> positions, const uint8_t* bytes) {
      for (const Position p : positions) {
        Row& row = all[table.KeyAtPosition(p).value];
        std::memcpy(&row.weight, bytes, 4);
        if (scored) std::memcpy(&row.score, bytes + 4, 4);
        std::memcpy(&row.meta, bytes + (scored ? 8 : 4), 8);
        bytes += scored ? 16 : 12;
      }
      return absl::OkStatus();
    };
    REQUIRE((*file)->ReadRows(table.id, kAll, add).ok());
  }
  return all;
}

// Steps without an example.
void Pass(const OpenedJob& job, uint64_t first, uint64_t last) {
  for (const auto& shard : job.shards) {
    for (uint64_t step = first; step <= last; ++step) {
      ShardUpdate update;
      update.tables.resize(1);
      REQUIRE(shard->Contribute(Step(step), {0, 1}, std::move(update)).verdict ==
              GateVerdict::kHeld);
      const auto committed = shard->TryCommit();
      REQUIRE(committed.ok());
      REQUIRE(*committed);
    }
  }
}

TEST_CASE("rows of another job's checkpoint are removed when the job's own steps say so",
          "[restoring]") {
  const TempFolder temp;
  TableSpec table = Table(false);
  WriteCheckpoint(temp.path() + "/c",
                  {{.clock = 1000, .rows = {{1, {1.0f, 0, {1000, 5}}}, {2, {2.0f, 0, {17, 5}}}}}},
                  table);
  table.life_cycle.removal.ttl_steps = 3;
  table.life_cycle.removal.every_steps = 1;
  const OpenedJob job = Open(temp, temp.path() + "/c", table);
  CHECK(Rows(temp, job, table).size() == 2);
  Pass(job, 1, 1);  // key 2 was idle for longer than that before the job began
  CHECK(Rows(temp, job, table).size() == 1);
  Pass(job, 2, 3);
  CHECK(Rows(temp, job, table).count(1) == 1);
  Pass(job, 4, 4);
  CHECK(Rows(temp, job, table).empty());
}

TEST_CASE("rows age on from job to job", "[restoring]") {
  const TempFolder temp;
  TableSpec table = Table(false);
  WriteCheckpoint(temp.path() + "/0",
                  {{.clock = 1000, .rows = {{1, {1.0f, 0, {990, 5}}}, {2, {2.0f, 0, {1000, 5}}}}}},
                  table);
  table.life_cycle.removal.ttl_steps = 1000;  // which looks at no row before
  OpenedJob job = Open(temp, temp.path() + "/0", table);
  Pass(job, 1, 7);
  std::map<uint64_t, Row> rows = Rows(temp, job, table);
  CHECK(storage::StepOf(rows.at(1).meta.last_step) == -10);
  CHECK(storage::StepOf(rows.at(2).meta.last_step) == 0);
  WriteCheckpoint(temp.path() + "/1", {{.clock = 7, .rows = rows}}, table);
  const TempFolder next;
  job = Open(next, temp.path() + "/1", table);
  rows = Rows(next, job, table);
  CHECK(storage::StepOf(rows.at(1).meta.last_step) == -17);
  CHECK(storage::StepOf(rows.at(2).meta.last_step) == -7);
  // Lists of changes and snapshots go by such steps, too: an increment follows the first cut.
  Shard& shard = *job.shards[0];
  Read(next.path() + "/full",
       shard.SnapshotCheckpoint({.cut = Step(0), .follow = true, .number = 1}));
  Pass(job, 1, 1);
  const auto second = shard.SnapshotCheckpoint(
      {.cut = Step(1), .base = Step(0), .follow = true, .number = 2, .base_number = 1});
  REQUIRE(second.ok());
  CHECK((*second)->is_increment());
}

TableSpec AdamTable() {
  TableSpec table = Table(false);
  table.segments[0].optimizer.type = OptimizerType::kAdam;
  return table;
}

TEST_CASE("Adam counts on behind the jobs that its state comes from", "[restoring]") {
  const TempFolder temp;
  const std::string checkpoint = temp.path() + "/c";
  const TableSpec table = AdamTable();
  SECTION("of bsp and the jobs before") {
    WriteCheckpoint(checkpoint, {{.clock = 100, .earlier = 50}}, table);
    JobPlan plan = Plan(checkpoint, table);
    plan.logged = true;
    OpenedJob job = Open(temp, plan);
    CHECK(Earlier(temp, job) == std::vector<uint64_t>{150, 150});
    // A restart reads its images, and nothing of the checkpoint.
    job = OpenedJob();
    plan.was_open = true;
    plan.restore_from.clear();
    plan.restore_plan.Clear();
    job = Open(temp, plan);
    CHECK(job.recovered);
    CHECK(Earlier(temp, job) == std::vector<uint64_t>{150, 150});
  }
  SECTION("of windows: those of the shard that applied the most, on every shard") {
    WriteCheckpoint(
        checkpoint,
        {{.clock = 3, .applied = 70, .range = {PartitionId(0), PartitionId(1)}},
         {.clock = 3, .applied = 80, .earlier = 5, .range = {PartitionId(2), PartitionId(3)}}},
        table);
    CHECK(Earlier(temp, Open(temp, checkpoint, table)) == std::vector<uint64_t>{85, 85});
  }
  SECTION("not where the state begins anew, nor without Adam") {
    WriteCheckpoint(checkpoint, {{.clock = 100, .earlier = 50}}, table);
    JobPlan plan = Plan(checkpoint, table);
    plan.restore_plan.mutable_tables(0)->set_reset_state(true);
    CHECK(Earlier(temp, Open(temp, plan)) == std::vector<uint64_t>{0, 0});
    const TempFolder other;
    WriteCheckpoint(other.path() + "/c", {{.clock = 100}}, Table(false));
    CHECK(Earlier(other, Open(other, other.path() + "/c", Table(false))) ==
          std::vector<uint64_t>{0, 0});
  }
  SECTION("and a job that resumes from a checkpoint of its own goes on so") {
    WriteCheckpoint(checkpoint, {{.clock = 100, .earlier = 50}}, table);
    JobPlan plan = Plan(checkpoint, table);
    plan.restore.emplace();
    plan.start_step = Step(100);
    CHECK(Earlier(temp, Open(temp, plan)) == std::vector<uint64_t>{50, 50});
  }
}

TEST_CASE("rows of another job's checkpoint keep their scores as they were at its step",
          "[restoring]") {
  const TempFolder temp;
  const TableSpec table = Table(true);
  // Key 1 is as it was at the full checkpoint, and decays until the increment.
  const std::map<uint64_t, Row> first = {{1, {1.0f, 8.0f, {5, 3}}}, {2, {2.0f, 8.0f, {20, 3}}}};
  const std::map<uint64_t, Row> second = {{2, {2.5f, 9.0f, {38, 4}}}, {3, {3.0f, 6.0f, {40, 1}}}};
  const bool synchronous = GENERATE(true, false);
  INFO("synchronous " << synchronous);
  if (synchronous) {
    WriteCheckpoint(temp.path() + "/c",
                    {{.clock = 20, .rows = first}, {.clock = 40, .base = 20, .rows = second}},
                    table);
  } else {
    WriteCheckpoint(temp.path() + "/c",
                    {{.clock = 1, .applied = 20, .rows = first},
                     {.clock = 2, .base = 1, .applied = 40, .rows = second}},
                    table);
  }
  const OpenedJob job = Open(temp, temp.path() + "/c", table);
  std::map<uint64_t, Row> rows = Rows(temp, job, table);
  REQUIRE(rows.size() == 3);
  for (auto& [key, row] : rows) {
    INFO("key " << key);
    CHECK(storage::StepOf(row.meta.last_step) == (key == 1 ? 5 : key == 2 ? 38 : 40) - 40);
    CHECK(row.meta.updates == (key == 1 ? 3 : key == 2 ? 4 : 1));
  }
  CHECK(rows[1].weight == 1.0f);
  CHECK(rows[2].weight == 2.5f);
  CHECK(rows[1].score == 0.5f);  // 8 halved at 10, 20, 30 and 40
  CHECK(rows[2].score == 4.5f);  // 9 halved at 40
  CHECK(rows[3].score == 6.0f);
}

TEST_CASE("rows of another job's checkpoint stay as they are where none is removed",
          "[restoring]") {
  const TempFolder temp;
  const TableSpec table = Table(false);
  WriteCheckpoint(temp.path() + "/c", {{.clock = 20, .rows = {{1, {1.0f, 0, {5, 3}}}}}}, table);
  const std::map<uint64_t, Row> rows = Rows(temp, Open(temp, temp.path() + "/c", table), table);
  REQUIRE(rows.size() == 1);
  CHECK(rows.at(1).meta.last_step == 5);
  CHECK(rows.at(1).meta.updates == 3);
}

}  // namespace
}  // namespace strata::server

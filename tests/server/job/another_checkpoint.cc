#include "tests/server/job/another_checkpoint.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/core/ids.h"
#include "proto/core/position.h"
#include "proto/core/uid.h"
#include "proto/runtime/base/timer.h"
#include "proto/runtime/files/manifest_io.h"
#include "proto/strata/checkpoint.pb.h"
#include "server/protocol/life_cycle_admission.h"
#include "server/shard/earlier_commits.h"
#include "server/shard/file_sections.h"
#include "server/shard/shard.h"
#include "server/table/memory.h"
#include "storage/checkpoint/shard_file.h"

namespace strata::server {
namespace {

const JobIdentity kWriter{{1, 1}, {2, 2}};

// Optimizers' state is zero.
std::vector<uint8_t> Bytes(const AnotherRow& row, const storage::RowLayout& layout) {
  std::vector<uint8_t> bytes(layout.row_bytes());
  std::memcpy(bytes.data(), &row.weight, 4);
  if (layout.scored) std::memcpy(bytes.data() + layout.score_offset(), &row.score, 4);
  std::memcpy(bytes.data() + layout.meta_offset(), &row.meta, sizeof row.meta);
  return bytes;
}

storage::ShardFileHeader HeaderOf(const AnotherFile& file, const std::vector<TableSpec>& tables) {
  storage::ShardFileHeader header;
  header.kind =
      file.base > 0 ? storage::ShardFileKind::kIncrement : storage::ShardFileKind::kCheckpoint;
  header.job = JobId(1);
  header.generation = Generation(1);
  header.identity = kWriter;
  header.cut = file.clock;
  header.base_cut = file.base;
  header.base = Step(file.base);
  header.partitioning = Partitioning(kFourPartitions);
  header.partitions = file.range;
  header.clock = Step(file.clock);
  for (const TableSpec& table : tables) {
    const storage::RowLayout layout = storage::RowLayout::For(table);
    header.tables.push_back({table.id, table.kind, layout.dim, layout.state_floats});
  }
  return header;
}

void AddRows(storage::ShardFileWriter& writer, const TableSpec& table, PartitionRange range,
             const AnotherRows& rows) {
  const storage::RowLayout layout = storage::RowLayout::For(table);
  std::map<Position, AnotherRow> sorted;
  for (const auto& [key, row] : rows) sorted[table.PositionOfKey(Key(key))] = row;
  for (const auto& [position, row] : sorted) {
    if (!range.Contains(Partitioning(kFourPartitions).Of(position))) continue;
    REQUIRE(writer.AddRow(table.id, position, Bytes(row, layout)).ok());
  }
}

void Write(const std::string& path, const AnotherFile& file, const std::vector<TableSpec>& tables) {
  auto writer = storage::ShardFileWriter::Create(path, HeaderOf(file, tables));
  INFO(writer.status());
  REQUIRE(writer.ok());
  AddRows(**writer, tables[0], file.range, file.rows);
  if (tables.size() > 1) AddRows(**writer, tables[1], file.range, file.dense);
  if (file.filter_bytes > 0) {
    std::vector<uint8_t> bytes(file.filter_bytes);
    const uint32_t of_no_table = 99;
    std::memcpy(bytes.data(), &of_no_table, sizeof of_no_table);
    const PartitionRange first{file.range.first, file.range.first};
    REQUIRE((*writer)->AddSection({AdmissionFilter::kSection, first, bytes}).ok());
  }
  if (file.applied > 0) {
    const uint64_t counters[2] = {file.applied, file.clock};
    std::vector<uint8_t> bytes(sizeof counters);
    std::memcpy(bytes.data(), counters, sizeof counters);
    REQUIRE((*writer)->AddSection({kCountersSection, file.range, bytes}).ok());
  }
  if (file.earlier > 0) {
    const std::vector<uint8_t> bytes =
        EncodeEarlierCommits(std::vector<uint64_t>(tables.size(), file.earlier));
    REQUIRE((*writer)->AddSection({kEarlierSection, file.range, bytes}).ok());
  }
  REQUIRE((*writer)->Finish().ok());
}

}  // namespace

TableSpec OneWeight(bool scored) {
  TableSpec table;
  table.id = TableId(0);
  table.name = "features";
  table.segments = {{"weight", 1, {}, {}}};
  table.life_cycle.removal.scored = scored;
  table.life_cycle.removal.decay = 0.5f;
  table.life_cycle.removal.decay_steps = 10;
  return table;
}

TableSpec OneTensor(uint64_t weights) {
  TableSpec table;
  table.id = TableId(1);
  table.name = "dense";
  table.kind = TableKind::kDense;
  table.segments = {{"value", 1, {}, {}}};
  table.tensors = {{"tensor", weights, Position(0), {}}};
  return table;
}

void WriteAnother(const std::string& folder, const std::vector<AnotherFile>& files,
                  const std::vector<TableSpec>& tables) {
  Manifest manifest;
  for (const AnotherFile& file : files) {
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
    Write(absl::StrCat(folder, "/", manifest.files(static_cast<int>(i)).name()), files[i], tables);
  }
}

JobPlan PlanFrom(const std::string& checkpoint, const std::vector<TableSpec>& tables) {
  JobPlan plan;
  plan.job = JobId(2);
  plan.identity = {{1, 1}, {3, 3}};
  plan.generation = Generation(1);
  plan.tables = tables;
  plan.partitioning = Partitioning(kFourPartitions);
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
  if (tables.size() > 1) {
    plan.restore_plan.add_tensors()->set_rows(tables[1].tensors[0].Rows(tables[1].dim()));
  }
  return plan;
}

OpenedJob OpenFrom(const TempFolder& temp, const JobPlan& plan) {
  auto opened = OpenJob(plan, temp.path() + "/server", Timer::Real());
  INFO(opened.status());
  REQUIRE(opened.ok());
  return *std::move(opened);
}

OpenedJob OpenFrom(const TempFolder& temp, const std::string& checkpoint,
                   const std::vector<TableSpec>& tables) {
  return OpenFrom(temp, PlanFrom(checkpoint, tables));
}

AnotherRows RowsOf(const TempFolder& temp, const OpenedJob& job, const TableSpec& table) {
  const storage::RowLayout layout = storage::RowLayout::For(table);
  AnotherRows all;
  for (const auto& shard : job.shards) {
    const std::string path = absl::StrCat(temp.path(), "/out-", shard->options().id.value);
    REQUIRE(shard->WriteCheckpoint(path, shard->clock()).ok());
    const auto file = storage::ShardFileReader::Open(path);
    REQUIRE(file.ok());
    const auto add = [&](std::span<const Position> positions, const uint8_t* bytes) {
      for (const Position p : positions) {
        AnotherRow& row = all[table.KeyAtPosition(p).value];
        std::memcpy(&row.weight, bytes, 4);
        if (layout.scored) std::memcpy(&row.score, bytes + layout.score_offset(), 4);
        std::memcpy(&row.meta, bytes + layout.meta_offset(), sizeof row.meta);
        bytes += layout.row_bytes();
      }
      return absl::OkStatus();
    };
    REQUIRE((*file)->ReadRows(table.id, kAllFour, add).ok());
  }
  return all;
}

void PassSteps(const OpenedJob& job, uint64_t first, uint64_t last) {
  for (const auto& shard : job.shards) {
    for (uint64_t step = first; step <= last; ++step) {
      ShardUpdate update;
      update.tables.resize(shard->table_count());
      REQUIRE(shard->Contribute(Step(step), {0, 1}, std::move(update)).verdict ==
              GateVerdict::kHeld);
      const auto committed = shard->TryCommit();
      REQUIRE(committed.ok());
      REQUIRE(*committed);
    }
  }
}

}  // namespace strata::server

// What labels have side by side goes with them (spec.model.initFrom): weights of rows and columns
// of tensors, with the optimizers' state. Against an account that knows of labels by name alone.
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
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
#include "server/shard/shard.h"
#include "server/table/memory.h"
#include "storage/checkpoint/shard_file.h"
#include "storage/row/layout.h"
#include "tests/server/job/label_account.h"
#include "tests/temp_folder.h"

namespace strata::server {
namespace {

constexpr uint32_t kPartitions = 4;
const JobIdentity kWriter{{1, 1}, {2, 2}};
const PartitionRange kAll{PartitionId(0), PartitionId(kPartitions - 1)};

uint64_t FirstOf(uint32_t partition, uint64_t row) {
  return Partitioning(kPartitions).First(PartitionId(partition)).value + row;
}

// A file of all partitions; `base`: it is an increment on that of cut 1.
CheckpointFile WriteFile(const std::string& folder, const Model& model, const Rows& rows,
                         bool base) {
  storage::ShardFileHeader header;
  header.kind = base ? storage::ShardFileKind::kIncrement : storage::ShardFileKind::kCheckpoint;
  header.job = JobId(1);
  header.generation = Generation(1);
  header.identity = kWriter;
  header.cut = base ? 2 : 1;
  header.base_cut = base ? 1 : 0;
  header.base = Step(base ? 1 : 0);
  header.partitioning = Partitioning(kPartitions);
  header.partitions = kAll;
  header.clock = Step(header.cut);
  for (const TableSpec& table : model.Tables()) {
    const storage::RowLayout layout = storage::RowLayout::For(table);
    header.tables.push_back({table.id, table.kind, layout.dim, layout.state_floats});
  }
  CheckpointFile out;
  out.set_name(absl::StrCat("part-", header.cut, ".strata"));
  auto writer = storage::ShardFileWriter::Create(absl::StrCat(folder, "/", out.name()), header);
  INFO(writer.status());
  REQUIRE(writer.ok());
  for (const auto& [at, row] : rows) {
    REQUIRE((*writer)->AddRow(TableId(at.first), Position(at.second), row).ok());
  }
  REQUIRE((*writer)->Finish().ok());
  out.set_last_partition(kPartitions - 1);
  out.set_sequence(base ? 1 : 0);
  out.set_cluster_id(kWriter.cluster.text());
  out.set_job_uid(kWriter.job.text());
  out.set_generation(1);
  out.set_cut(header.cut);
  return out;
}

RestoreColumns Columns(const Labels& saved, const Labels& now) {
  RestoreColumns columns;
  columns.set_saved(static_cast<uint32_t>(saved.size()));
  for (const std::string& label : now) {
    uint32_t from = 0;
    for (uint32_t t = 0; t < saved.size(); ++t) {
      if (saved[t] == label) from = t + 1;
    }
    columns.add_from(from);
  }
  return columns;
}

uint64_t RowsOf(uint64_t elements) { return (elements + kDim - 1) / kDim; }

JobPlan Plan(const std::string& checkpoint, const Model& saved, const Model& now, bool reset,
             uint32_t shards) {
  JobPlan plan;
  plan.job = JobId(2);
  plan.identity = {{1, 1}, {3, 3}};
  plan.generation = Generation(1);
  plan.tables = now.Tables();
  plan.partitioning = Partitioning(kPartitions);
  plan.seed = kSeed;
  plan.logged = false;
  for (uint32_t i = 0; i < shards; ++i) {
    const uint32_t each = kPartitions / shards;
    const PartitionRange range{PartitionId(each * i), PartitionId(each * (i + 1) - 1)};
    auto memory = DivideMemory(plan.tables, plan.partitioning.First(range.first),
                               plan.partitioning.Last(range.last), 0, shards);
    REQUIRE(memory.ok());
    plan.shards.push_back({ShardId(i), range, *memory});
  }
  plan.restore_from = checkpoint;
  const RestoreColumns columns = Columns(saved.labels, now.labels);
  RestoreTable& table = *plan.restore_plan.add_tables();
  table.set_reset_state(reset);
  *table.mutable_columns() = columns;
  const uint64_t elements[] = {kInputs * saved.labels.size(), saved.labels.size(), 6};
  for (size_t i = 0; i < 3; ++i) {
    RestoreTensor& tensor = *plan.restore_plan.add_tensors();
    tensor.set_from_row(saved.first[i]);
    tensor.set_to_row(now.first[i]);
    tensor.set_rows(RowsOf(elements[i]));
    tensor.set_reset_state(reset);
    if (i < 2) *tensor.mutable_columns() = columns;
  }
  return plan;
}

// All rows of an opened job, as its checkpoint has them.
Rows Read(const TempFolder& temp, const OpenedJob& job) {
  Rows rows;
  for (const auto& shard : job.shards) {
    const std::string path = absl::StrCat(temp.path(), "/out-", shard->options().id.value);
    REQUIRE(shard->WriteCheckpoint(path, shard->clock()).ok());
    const auto file = storage::ShardFileReader::Open(path);
    REQUIRE(file.ok());
    for (const storage::TableShape& shape : (*file)->header().tables) {
      const auto add = [&](std::span<const Position> positions, const uint8_t* bytes) {
        for (const Position p : positions) {
          rows[{shape.id.value, p.value}].assign(bytes, bytes + shape.row_bytes());
          bytes += shape.row_bytes();
        }
        return absl::OkStatus();
      };
      REQUIRE((*file)->ReadRows(shape.id, kAll, add).ok());
    }
  }
  return rows;
}

const std::vector<uint64_t> kKeys = {1, 2, 3, 17, 400, 5000};

// A checkpoint of a file and of an increment that has every second row, of a later time.
void WriteCheckpoint(const std::string& folder, const Model& saved, Trained& first,
                     Trained& second) {
  Manifest manifest;
  const Rows rows = AccountOf(saved, saved.labels, first, false, kKeys);
  const Rows later = AccountOf(saved, saved.labels, second, false, kKeys);
  Rows changed;
  size_t i = 0;
  for (const auto& [at, row] : later) {
    if (i++ % 2 == 1) changed[at] = row;
  }
  std::filesystem::create_directories(folder);
  *manifest.add_files() = WriteFile(folder, saved, rows, false);
  *manifest.add_files() = WriteFile(folder, saved, changed, true);
  REQUIRE(WriteManifest(folder, manifest).ok());
}

// The account's number of what lies in a row that the increment has is the later one.
Rows Expected(const Model& saved, const Model& now, Trained& first, Trained& second, bool reset) {
  // Both accounts in the saved job's form say which rows the increment has; by the rows' values the
  // names of what lies there are found.
  const Rows rows = AccountOf(saved, saved.labels, first, false, kKeys);
  std::map<float, float> later;  // the number of the first time: that of the second
  const Rows all = AccountOf(saved, saved.labels, second, false, kKeys);
  size_t i = 0;
  for (const auto& [at, row] : all) {
    if (i++ % 2 == 0) continue;
    for (size_t f = 0; f + 8 < row.size(); f += 4) {
      float was = 0, is = 0;
      std::memcpy(&was, rows.at(at).data() + f, 4);
      std::memcpy(&is, row.data() + f, 4);
      if (was > 10000.0f) later[was] = is;
    }
  }
  Labels known;
  for (const std::string& label : now.labels) {
    if (Has(saved.labels, label)) known.push_back(label);
  }
  Rows expected = AccountOf(now, known, first, reset, kKeys);
  for (auto& [at, row] : expected) {
    for (size_t f = 0; f + 8 < row.size(); f += 4) {
      float value = 0;
      std::memcpy(&value, row.data() + f, 4);
      const auto changed = later.find(value);
      if (changed != later.end()) std::memcpy(row.data() + f, &changed->second, 4);
    }
    SetMeta(row, {0u - 1u, 3});  // it ages from the checkpoint's step on, which is 2
  }
  return expected;
}

const char* Name(OptimizerType type) {
  switch (type) {
    case OptimizerType::kAdagrad:
      return "adagrad";
    case OptimizerType::kAdam:
      return "adam";
    case OptimizerType::kRowwiseAdagrad:
      return "rowwise_adagrad";
    case OptimizerType::kFtrl:
      return "ftrl";
    default:
      return "sgd";
  }
}

TEST_CASE("what a label has goes with it when labels come, go and change places", "[restoring]") {
  const TempFolder temp;
  const auto [was, is] = GENERATE(table<Labels, Labels>({{{"a", "b"}, {"b", "a"}},
                                                         {{"a", "b"}, {"b"}},
                                                         {{"a"}, {"b", "a"}},
                                                         {{"a", "b", "c"}, {"c", "d", "a"}},
                                                         {{"a", "b"}, {"x", "b", "y", "a", "z"}},
                                                         {{"e", "d", "c", "b", "a"}, {"a", "x"}},
                                                         {{"a", "b"}, {"x", "y", "z"}}}));
  const OptimizerType optimizer =
      GENERATE(OptimizerType::kSgd, OptimizerType::kAdagrad, OptimizerType::kAdam,
               OptimizerType::kRowwiseAdagrad, OptimizerType::kFtrl);
  const bool reset = GENERATE(false, true);
  const bool scored = optimizer == OptimizerType::kAdam || optimizer == OptimizerType::kSgd;
  INFO(Name(optimizer) << ", reset " << reset << ", scored " << scored);
  INFO(was.size() << " labels, then " << is.size());
  // The tensors change their places, and two share a partition.
  const Model saved{was, optimizer, {FirstOf(2, 0), FirstOf(0, 3), FirstOf(2, 40)}, scored};
  const Model now{is, optimizer, {FirstOf(1, 5), FirstOf(3, 0), FirstOf(1, 50)}, scored};
  Trained first(1), second(2);
  WriteCheckpoint(temp.path() + "/c", saved, first, second);
  const Rows expected = Expected(saved, now, first, second, reset);
  // Which shards take the rows is nothing to the optimizer.
  const std::vector<uint32_t> counts =
      optimizer == OptimizerType::kAdam ? std::vector<uint32_t>{1, 2, 4} : std::vector<uint32_t>{2};
  for (const uint32_t shards : counts) {
    INFO(shards << " shards");
    const JobPlan plan = Plan(temp.path() + "/c", saved, now, reset, shards);
    auto opened = OpenJob(plan, absl::StrCat(temp.path(), "/s", shards), Timer::Real());
    INFO(opened.status());
    REQUIRE(opened.ok());
    const Rows rows = Read(temp, *opened);
    REQUIRE(rows.size() == expected.size());
    for (const auto& [at, row] : expected) {
      INFO("table " << at.first << ", position " << at.second);
      REQUIRE(rows.contains(at));
      REQUIRE(rows.at(at) == row);
    }
  }
}

// A row's one number of its state is the greatest of those that its elements had, and so are the
// step and the updates.
TEST_CASE("a row of several rows' elements has the greatest of their counts", "[restoring]") {
  const TempFolder temp;
  const Model saved{
      {"a", "b"}, OptimizerType::kRowwiseAdagrad, {FirstOf(2, 0), FirstOf(0, 3), FirstOf(2, 40)}};
  const Model now{
      {"a"}, OptimizerType::kRowwiseAdagrad, {FirstOf(1, 5), FirstOf(3, 0), FirstOf(1, 50)}};
  Trained first(1);
  Rows rows = AccountOf(saved, saved.labels, first, false, kKeys);
  // Elements 0 to 3 and 4 to 7 of the layer, of which every second one is a's.
  const std::pair<uint32_t, uint64_t> one{1, FirstOf(2, 0)}, other{1, FirstOf(2, 1)};
  SetFloat(rows.at(one), kDim, 8.0f);
  SetMeta(rows.at(one), {0u - 4u, 7});
  SetFloat(rows.at(other), kDim, 6.0f);
  SetMeta(rows.at(other), {0u - 2u, 5});
  std::filesystem::create_directories(temp.path() + "/c");
  Manifest manifest;
  *manifest.add_files() = WriteFile(temp.path() + "/c", saved, rows, false);
  REQUIRE(WriteManifest(temp.path() + "/c", manifest).ok());
  auto opened =
      OpenJob(Plan(temp.path() + "/c", saved, now, false, 1), temp.path() + "/s", Timer::Real());
  INFO(opened.status());
  REQUIRE(opened.ok());
  const std::vector<uint8_t> row = Read(temp, *opened).at({1, FirstOf(1, 5)});
  float state = 0;
  storage::RowMeta meta;
  std::memcpy(&state, row.data() + kDim * 4, 4);
  std::memcpy(&meta, row.data() + row.size() - sizeof meta, sizeof meta);
  CHECK(state == 8.0f);
  CHECK(meta.last_step == 0u - 3u);  // the file is of step 1
  CHECK(meta.updates == 7);
}

TEST_CASE("columns that the file does not have are not read", "[restoring]") {
  const TempFolder temp;
  const Model saved{
      {"a", "b"}, OptimizerType::kAdagrad, {FirstOf(2, 0), FirstOf(0, 3), FirstOf(2, 40)}};
  const Model now{
      {"b", "c"}, OptimizerType::kAdagrad, {FirstOf(1, 5), FirstOf(3, 0), FirstOf(1, 50)}};
  Trained first(1), second(2);
  WriteCheckpoint(temp.path() + "/c", saved, first, second);
  JobPlan plan = Plan(temp.path() + "/c", saved, now, false, 1);
  const char* table = "dense";
  RestoreColumns& rows = *plan.restore_plan.mutable_tables(0)->mutable_columns();
  RestoreTensor& tensor = *plan.restore_plan.mutable_tensors(0);
  SECTION("more columns of a row") { rows.set_saved(3), table = "features"; }
  SECTION("no columns of a row") { rows.set_saved(0), table = "features"; }
  SECTION("a column that no row has") { rows.set_from(0, 3), table = "features"; }
  SECTION("a column twice") { rows.set_from(1, 2), table = "features"; }
  SECTION("a column of a label that is none here") { rows.add_from(0), table = "features"; }
  SECTION("more columns of a tensor") { tensor.mutable_columns()->set_saved(3); }
  SECTION("a column that no tensor has") { tensor.mutable_columns()->set_from(0, 3); }
  SECTION("a tensor of more rows") { tensor.set_rows(tensor.rows() + 1); }
  SECTION("columns that do not divide a tensor") { tensor.mutable_columns()->add_from(0); }
  SECTION("no column here") { tensor.mutable_columns()->clear_from(); }
  SECTION("another tensor's place") { tensor.set_to_row(tensor.to_row() + 1); }
  const absl::Status refused = OpenJob(plan, temp.path() + "/s", Timer::Real()).status();
  INFO(refused);
  CHECK(absl::IsFailedPrecondition(refused));
  CHECK(absl::StrContains(refused.message(),
                          absl::StrCat("rows of table ", table, " have another size")));
}

}  // namespace
}  // namespace strata::server

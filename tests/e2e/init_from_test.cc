// Down to the rows: what a job has of the checkpoint that spec.model.initFrom names.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/core/ids.h"
#include "proto/core/table_spec.h"
#include "proto/strata/job.pb.h"
#include "tests/e2e/cluster/small_job.h"
#include "tools/cluster/checkpoint/rows.h"
#include "tools/cluster/embedded/embedded.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata {
namespace {

ScratchFolder Folder() {
  auto folder = ScratchFolder::Make("strata-test");
  REQUIRE(folder.ok());
  return *std::move(folder);
}

// Trains the job in `folder`, and returns its last checkpoint.
std::string Train(TrainingJob job, const std::string& folder) {
  job.mutable_spec()->mutable_checkpoint()->set_directory(folder);
  EmbeddedOptions options;
  options.job = job;
  const auto status = RunEmbedded(options);
  INFO(status.status());
  REQUIRE(status.ok());
  INFO(status->conditions(status->conditions_size() - 1).message());
  REQUIRE(status->state() == SUCCEEDED);
  return status->checkpoint();
}

// The job, starting from the checkpoint, with rates of nothing: what it has at the end is what it
// began with.
TrainingJob From(TrainingJob job, const std::string& checkpoint) {
  JobSpec& spec = *job.mutable_spec();
  InitFromSpec& init = *spec.mutable_model()->mutable_init_from();
  init.set_checkpoint(checkpoint);
  init.set_new_tensors("allow");
  init.set_dropped_tensors("allow");
  init.set_optimizer_state("reset");
  spec.mutable_optimizer()->clear_linear();
  for (OptimizerConfig* o :
       {spec.mutable_optimizer()->mutable_sparse(), spec.mutable_optimizer()->mutable_dense()}) {
    o->set_type("sgd");
    o->set_learning_rate(1e-30f);
  }
  for (TableConfig& table : *spec.mutable_tables()) {
    table.clear_life_cycle();
    table.mutable_optimizer()->set_type("sgd");
    table.mutable_optimizer()->set_learning_rate(1e-30f);
  }
  spec.mutable_training()->set_epochs(1);
  return job;
}

using Weights = std::vector<float>;

// Of a hashed table, by key. A weight that began as 0 and has moved by nothing is 0.
std::map<uint64_t, Weights> Rows(const std::string& checkpoint, const std::string& table) {
  const auto open = CheckpointRows::Open(checkpoint);
  INFO(open.status());
  REQUIRE(open.ok());
  std::map<uint64_t, Weights> rows;
  for (const TableSpec& t : open->tables().tables) {
    if (t.name != table) continue;
    const absl::Status read = open->ReadAll(t.id.value, [&](Position p, const uint8_t* row) {
      Weights& weights = rows[t.KeyAtPosition(p).value];
      weights.resize(t.dim());
      std::memcpy(weights.data(), row, weights.size() * 4);
      for (float& w : weights) w = std::abs(w) < 1e-20f ? 0 : w;
      return absl::OkStatus();
    });
    REQUIRE(read.ok());
  }
  REQUIRE_FALSE(rows.empty());
  return rows;
}

Weights Tensor(const std::string& checkpoint, const std::string& name) {
  const auto open = CheckpointRows::Open(checkpoint);
  REQUIRE(open.ok());
  Weights all;
  for (const TensorSpec& t : open->tables().tables[1].tensors) {
    if (t.name != name) continue;
    const Position last(t.first.value + t.Rows(256) - 1);
    const absl::Status read = open->ReadRange(1, t.first, last, [&](Position, const uint8_t* row) {
      all.resize(all.size() + 256);
      std::memcpy(all.data() + all.size() - 256, row, 1024);
      return absl::OkStatus();
    });
    REQUIRE(read.ok());
  }
  REQUIRE_FALSE(all.empty());
  return all;
}

// Values of the columns are functions of the line.
std::string Value(const std::string& column, int line) {
  if (column == "y") return absl::StrCat(line % 3 == 0 ? 1 : 0);
  if (column == "z") return absl::StrCat(line % 4 == 1 ? 1 : 0);
  if (column == "v") return absl::StrCat(line % 5 == 0 ? 1 : 0);
  if (column == "price") return absl::StrCat(line % 10);
  return absl::StrCat(column.substr(0, 1), line % (column == "user"   ? 23
                                                   : column == "item" ? 31
                                                                      : 7));
}

TrainingJob CsvJob(const std::string& path, const std::string& type,
                   const std::vector<std::string>& columns) {
  std::ofstream out(path);
  out << absl::StrJoin(columns, ",") << "\n";
  for (int line = 0; line < 400; ++line) {
    std::vector<std::string> values;
    for (const std::string& c : columns) values.push_back(Value(c, line));
    out << absl::StrJoin(values, ",") << "\n";
  }
  TrainingJob job;
  job.set_api_version("strata/v1");
  job.set_kind("TrainingJob");
  job.mutable_metadata()->set_name("j");
  JobSpec& spec = *job.mutable_spec();
  DataSpec& data = *spec.mutable_data();
  data.set_format("csv");
  data.add_train(path);
  data.mutable_columns()->set_label("y");
  for (const std::string& c : columns) {
    if (c == "price") data.mutable_columns()->add_numeric(c);
    if (c != "price" && c != "y") data.mutable_columns()->add_categorical(c);
  }
  spec.mutable_model()->set_type(type);
  spec.mutable_model()->set_embedding_dim(4);
  if (type == "deepfm") {
    spec.mutable_model()->add_hidden(8);
    spec.mutable_model()->add_hidden(8);
  }
  spec.mutable_training()->set_mode("bsp");
  spec.mutable_training()->set_lanes(2);
  spec.mutable_training()->set_batch_size(16);
  spec.mutable_training()->set_epochs(2);
  spec.mutable_storage()->set_partitions(64);
  spec.mutable_storage()->set_shards_per_server(2);
  spec.mutable_replicas()->set_servers(2);
  return job;
}

TEST_CASE("a table that is left behind begins anew, and the layers stay", "[e2e][init_from]") {
  const ScratchFolder folder = Folder();
  const TrainingJob job =
      CsvJob(folder.path() + "/t.csv", "deepfm", {"y", "user", "item", "price"});
  const std::string first = Train(job, folder.path() + "/first");
  TrainingJob anew = From(job, first);
  (*anew.mutable_spec()->mutable_model()->mutable_init_from()->mutable_rename())["features"] = "";
  const std::string second = Train(anew, folder.path() + "/second");
  const auto trained = Rows(first, "features"), rows = Rows(second, "features");
  const auto open = CheckpointRows::Open(second);
  REQUIRE(open.ok());
  CHECK(rows.size() == trained.size());
  for (const auto& [key, weights] : rows) {
    const std::vector<uint8_t> initial = open->InitialRow(0, Key(key));
    REQUIRE(std::memcmp(initial.data(), weights.data(), weights.size() * 4) == 0);
    REQUIRE(trained.at(key) != weights);
  }
  for (const char* tensor :
       {"bias", "numeric_weight", "layer_0_weight", "layer_1_weight", "layer_2_bias"}) {
    INFO(tensor);
    CHECK(Tensor(second, tensor) == Tensor(first, tensor));
  }
  // Without the rename it is the trained one.
  anew.mutable_spec()->mutable_model()->mutable_init_from()->clear_rename();
  CHECK(Rows(Train(anew, folder.path() + "/third"), "features") == trained);
}

TEST_CASE("rows go with the names of csv columns, wherever those lie", "[e2e][init_from]") {
  const ScratchFolder folder = Folder();
  const std::string first =
      Train(CsvJob(folder.path() + "/1.csv", "fm", {"y", "user", "item", "price"}),
            folder.path() + "/first");
  const TrainingJob wider =
      CsvJob(folder.path() + "/2.csv", "fm", {"shop", "item", "price", "user", "y"});
  const std::string second = Train(From(wider, first), folder.path() + "/second");
  const auto before = Rows(first, "features"), after = Rows(second, "features");
  CHECK(before.size() == 23 + 31);
  CHECK(after.size() == 23 + 31 + 7);
  for (const auto& [key, weights] : before) REQUIRE(after.at(key) == weights);
  CHECK(Tensor(second, "bias") == Tensor(first, "bias"));
  CHECK(Tensor(second, "numeric_weight") == Tensor(first, "numeric_weight"));
  CHECK(Tensor(second, "numeric_embedding") == Tensor(first, "numeric_embedding"));
}

TEST_CASE("a tensor's rows go where it is renamed to", "[e2e][init_from]") {
  const ScratchFolder folder = Folder();
  const TrainingJob job =
      CsvJob(folder.path() + "/t.csv", "deepfm", {"y", "user", "item", "price"});
  const std::string first = Train(job, folder.path() + "/first");
  TrainingJob renamed = From(job, first);
  auto& rename = *renamed.mutable_spec()->mutable_model()->mutable_init_from()->mutable_rename();
  rename["layer_0_bias"] = "layer_1_bias";
  rename["layer_1_bias"] = "";
  const std::string second = Train(renamed, folder.path() + "/second");
  CHECK(Tensor(second, "layer_1_bias") == Tensor(first, "layer_0_bias"));
  CHECK(Tensor(second, "layer_1_bias") != Tensor(first, "layer_1_bias"));
  for (const float w : Tensor(second, "layer_0_bias")) REQUIRE(std::abs(w) < 1e-20f);
  CHECK(Tensor(second, "layer_1_weight") == Tensor(first, "layer_1_weight"));
}

// The same with other labels than y.
TrainingJob LabelledJob(const std::string& path, const std::vector<std::string>& labels) {
  std::vector<std::string> columns = {"user", "item", "price"};
  columns.insert(columns.end(), labels.begin(), labels.end());
  TrainingJob job = CsvJob(path, "deepfm", columns);
  ColumnsSpec& given = *job.mutable_spec()->mutable_data()->mutable_columns();
  given.clear_label();
  given.clear_categorical();
  for (const char* column : {"user", "item"}) given.add_categorical(column);
  for (const std::string& label : labels) job.mutable_spec()->add_labels()->set_name(label);
  return job;
}

// Of rows of columns, `count` of them, one column.
Weights Column(const Weights& all, size_t columns, size_t column, size_t count) {
  Weights out;
  for (size_t i = 0; i < count; ++i) out.push_back(all.at(i * columns + column));
  return out;
}

TEST_CASE("labels take their outputs with them", "[e2e][init_from]") {
  const ScratchFolder folder = Folder();
  const std::string first =
      Train(LabelledJob(folder.path() + "/1.csv", {"y", "z"}), folder.path() + "/first");
  const std::string second =
      Train(From(LabelledJob(folder.path() + "/2.csv", {"z", "v", "y"}), first),
            folder.path() + "/second");
  const auto before = Rows(first, "features"), after = Rows(second, "features");
  REQUIRE(after.size() == before.size());
  for (const auto& [key, was] : before) {
    const Weights& is = after.at(key);
    REQUIRE(was.size() == 6);  // an embedding of 4, then y and z
    REQUIRE(is == Weights{was[0], was[1], was[2], was[3], was[5], 0, was[4]});
  }
  const std::map<std::string, size_t> outputs = {{"bias", 1},
                                                 {"numeric_weight", 1},
                                                 {"layer_2_weight", 8},
                                                 {"layer_2_bias", 1},
                                                 {"interaction_weight", 4}};
  for (const auto& [name, inputs] : outputs) {
    INFO(name);
    const Weights was = Tensor(first, name), is = Tensor(second, name);
    CHECK(Column(is, 3, 0, inputs) == Column(was, 2, 1, inputs));
    CHECK(Column(is, 3, 2, inputs) == Column(was, 2, 0, inputs));
    CHECK(Column(was, 2, 0, inputs) != Column(was, 2, 1, inputs));
    if (name == "layer_2_weight") continue;  // whose new column is drawn
    for (const float w : Column(is, 3, 1, inputs)) CHECK(std::abs(w) < 1e-20f);
  }
  CHECK(Tensor(second, "layer_1_weight") == Tensor(first, "layer_1_weight"));
}

TEST_CASE("rows go where their table is renamed to, whatever its number", "[e2e][init_from]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = testing::SmallJob(folder.path());
  testing::UseFiveLikeTables(folder.path(), 300, 20, job);
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_model()->set_type("fm");
  spec.mutable_model()->clear_hidden();
  spec.mutable_replicas()->set_servers(2);
  for (TableConfig& table : *spec.mutable_tables()) table.clear_life_cycle();
  const std::string first = Train(job, folder.path() + "/first");
  TrainingJob renamed = From(job, first);
  JobSpec& other = *renamed.mutable_spec();
  const std::map<std::string, std::string> names = {{"second", "people"}, {"fourth", "second"}};
  const auto name_now = [&](const std::string& name) {
    const auto now = names.find(name);
    return now == names.end() ? name : now->second;
  };
  for (TableConfig& table : *other.mutable_tables()) table.set_name(name_now(table.name()));
  for (FieldConfig& field : *other.mutable_fields()) field.set_table(name_now(field.table()));
  other.mutable_tables()->SwapElements(1, 3);
  other.mutable_tables()->SwapElements(0, 2);
  for (const auto& [from, to] : names) {
    (*other.mutable_model()->mutable_init_from()->mutable_rename())[from] = to;
  }
  const std::string second = Train(renamed, folder.path() + "/second");
  for (const char* name : {"first", "second", "third", "fourth", "fifth"}) {
    INFO(name);
    CHECK(Rows(second, name_now(name)) == Rows(first, name));
  }
}

}  // namespace
}  // namespace strata

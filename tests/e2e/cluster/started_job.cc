#include "tests/e2e/cluster/started_job.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <fstream>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/core/ids.h"
#include "proto/core/table_spec.h"
#include "tools/cluster/checkpoint/rows.h"
#include "tools/cluster/embedded/embedded.h"

namespace strata::testing {
namespace {

using Weights = std::vector<float>;

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

void ClearTiny(Weights& weights) {
  for (float& w : weights) w = std::abs(w) < 1e-20f ? 0 : w;
}

}  // namespace

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
      ClearTiny(weights);
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
  ClearTiny(all);
  return all;
}

}  // namespace strata::testing

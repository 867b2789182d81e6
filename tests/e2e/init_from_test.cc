// Down to the rows: what a job has of the checkpoint that spec.model.initFrom names.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/core/ids.h"
#include "proto/runtime/files/manifest_io.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/e2e/cluster/small_job.h"
#include "tests/e2e/cluster/started_job.h"
#include "tools/cluster/checkpoint/rows.h"
#include "tools/cluster/embedded/embedded.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata {
namespace {

namespace fs = std::filesystem;

using testing::CsvJob;
using testing::From;
using testing::LabelledJob;
using testing::Rows;
using testing::Tensor;
using testing::Train;

using Weights = std::vector<float>;

ScratchFolder Folder() {
  auto folder = ScratchFolder::Make("strata-test");
  REQUIRE(folder.ok());
  return *std::move(folder);
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
       {"bias", "numeric_weight", "layer_0_weight", "layer_1_weight", "output_bias"}) {
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
                                                 {"output_weight", 8},
                                                 {"output_bias", 1},
                                                 {"interaction_weight", 4}};
  for (const auto& [name, inputs] : outputs) {
    INFO(name);
    const Weights was = Tensor(first, name), is = Tensor(second, name);
    CHECK(Column(is, 3, 0, inputs) == Column(was, 2, 1, inputs));
    CHECK(Column(is, 3, 2, inputs) == Column(was, 2, 0, inputs));
    CHECK(Column(was, 2, 0, inputs) != Column(was, 2, 1, inputs));
    if (name == "output_weight") continue;  // whose new column is drawn
    for (const float w : Column(is, 3, 1, inputs)) CHECK(std::abs(w) < 1e-20f);
  }
  CHECK(Tensor(second, "layer_1_weight") == Tensor(first, "layer_1_weight"));
}

// Of the tensors of `second` that have the numbers of one of `first` the names, and that one's if
// it has another name: "output_weight of layer_1_weight". Of zeros, as a bias begins, nobody knows.
std::set<std::string> Taken(const std::string& second, const std::string& first) {
  const auto from = CheckpointRows::Open(first), to = CheckpointRows::Open(second);
  REQUIRE(from.ok());
  REQUIRE(to.ok());
  std::set<std::string> taken;
  for (const std::string& name : to->tables().tensor_names) {
    const Weights numbers = Tensor(second, name);
    if (numbers == Weights(numbers.size())) continue;
    std::set<std::string> origins;
    for (const std::string& other : from->tables().tensor_names) {
      if (Tensor(first, other) == numbers) origins.insert(other);
    }
    if (origins.empty()) continue;
    taken.insert(origins.contains(name) ? name : absl::StrCat(name, " of ", *origins.begin()));
  }
  return taken;
}

TEST_CASE("whatever the depth and the model, a tensor has the numbers of its own name",
          "[e2e][init_from]") {
  struct Model {
    std::string type;
    std::vector<uint32_t> hidden;
  };
  struct Case {
    Model first, second;
    std::set<std::string> taken;
  };
  const ScratchFolder folder = Folder();
  const auto job = [&](const Model& model) {
    TrainingJob job = CsvJob(folder.path() + "/t.csv", model.type, {"y", "user", "item", "price"});
    ModelSpec& spec = *job.mutable_spec()->mutable_model();
    spec.mutable_hidden()->Assign(model.hidden.begin(), model.hidden.end());
    if (model.type == "dcn_v2") spec.set_cross_layers(1);
    return job;
  };
  const Model fm{"fm", {}}, deep{"deepfm", {8}}, cross{"dcn_v2", {8}};
  const std::vector<Case> cases = {
      {{"deepfm", {8, 1}},  // its second layer has the shape of the other's output
       deep,
       {"bias", "numeric_weight", "layer_0_weight", "layer_0_bias", "output_bias"}},
      {deep,
       {"deepfm", {8, 8}},
       {"bias", "numeric_weight", "layer_0_weight", "layer_0_bias", "output_weight",
        "output_bias"}},
      {{"deepfm", {8, 4}},
       {"deepfm", {4}},
       {"bias", "numeric_weight", "output_weight", "output_bias"}},
      {fm, deep, {"bias", "numeric_weight"}},
      {deep, fm, {"bias", "numeric_weight"}},
      {deep, cross, {"layer_0_weight", "layer_0_bias", "output_bias"}},
      {cross, deep, {"layer_0_weight", "layer_0_bias", "output_bias"}},
      {fm, cross, {}}};
  int number = 0;
  for (const Case& c : cases) {
    const std::string name = absl::StrCat(folder.path(), "/", ++number);
    INFO(number << ": " << c.first.type << " to " << c.second.type);
    const std::string first = Train(job(c.first), name + "-first");
    const std::string second = Train(From(job(c.second), first), name + "-second");
    CHECK(Taken(second, first) == c.taken);
  }
}

TEST_CASE("a checkpoint with the names of earlier versions goes on and is begun from",
          "[e2e][init_from]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = CsvJob(folder.path() + "/t.csv", "deepfm", {"y", "user", "item", "price"});
  const std::string today = folder.path() + "/today", earlier = folder.path() + "/earlier";
  const std::string first = Train(job, today);
  fs::copy(today, earlier, fs::copy_options::recursive);
  const std::string old = earlier + first.substr(today.size());
  auto manifest = ReadManifest(old);
  REQUIRE(manifest.ok());
  for (SchemaTensor& tensor : *manifest->mutable_schema()->mutable_tensors()) {
    if (tensor.name() == "output_weight") tensor.set_name("layer_2_weight");
    if (tensor.name() == "output_bias") tensor.set_name("layer_2_bias");
  }
  REQUIRE(WriteManifest(old, *manifest).ok());
  REQUIRE(ReadManifest(old)->schema().tensors(6).name() == "layer_2_weight");

  TrainingJob begun = From(job, old);
  begun.mutable_spec()->mutable_model()->mutable_init_from()->set_new_tensors("refuse");
  begun.mutable_spec()->mutable_model()->mutable_init_from()->set_dropped_tensors("refuse");
  const std::string second = Train(begun, folder.path() + "/second");
  CHECK(Tensor(second, "output_weight") == Tensor(first, "output_weight"));
  job.mutable_spec()->mutable_training()->set_epochs(3);
  std::vector<std::string> hashes;
  for (const std::string& directory : {today, earlier}) {
    EmbeddedOptions options;
    options.job = job;
    options.job.mutable_spec()->mutable_checkpoint()->set_directory(directory);
    options.resume = true;
    const auto status = RunEmbedded(options);
    INFO(status.status());
    REQUIRE(status.ok());
    INFO(status->conditions(status->conditions_size() - 1).message());
    REQUIRE(status->state() == SUCCEEDED);
    hashes.push_back(status->model_hash());
  }
  CHECK(hashes[0] == hashes[1]);
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

#include "tools/cluster/export/plan.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/job/job_spec.h"
#include "proto/job/tables/model_tables.h"
#include "proto/strata/job.pb.h"

namespace strata {
namespace {

ModelTables Tables(const std::string& model, uint32_t fields, uint32_t numeric) {
  TrainingJob job;
  job.set_api_version("strata/v1");
  job.set_kind("TrainingJob");
  job.mutable_metadata()->set_name("j");
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_data()->set_format("libfm");
  spec.mutable_data()->add_train("/t");
  spec.mutable_model()->set_type(model);
  spec.mutable_model()->set_embedding_dim(4);
  if (model == "deepfm") spec.mutable_model()->add_hidden(5);
  spec.mutable_optimizer()->mutable_sparse()->set_type("adam");
  const absl::Status resolved = ResolveJob(job);
  INFO(resolved);
  REQUIRE(resolved.ok());
  auto tables = MakeModelTables(job.spec(), fields, numeric);
  REQUIRE(tables.ok());
  return *std::move(tables);
}

ExportPlan Plan(const ModelTables& tables, uint64_t rows, const ExportPlanOptions& options) {
  auto plan = PlanExport(tables, {rows, 0}, options);
  INFO(plan.status());
  REQUIRE(plan.ok());
  return *std::move(plan);
}

const ExportArray& Find(const ExportPlan& plan, const std::string& name) {
  for (const ExportBlock& block : plan.blocks) {
    for (const ExportArray& a : block.arrays) {
      if (a.name == name) return a;
    }
  }
  FAIL("no array " << name);
  throw 0;
}

using Shape = std::vector<uint64_t>;

TEST_CASE("npy: one file for each array, headers to the byte", "[export]") {
  const ModelTables tables = Tables("fm", 3, 2);
  const ExportPlan plan = Plan(tables, 7, {});
  CHECK(plan.files.size() == 6);
  CHECK(Find(plan, "features.keys").shape == Shape{7});
  CHECK(Find(plan, "features.embedding").shape == Shape{7, 4});
  CHECK(Find(plan, "features.weight").shape == Shape{7, 1});
  CHECK(Find(plan, "numeric_embedding").shape == Shape{2, 4});
  const ExportArray& keys = Find(plan, "features.keys");
  const std::string& header = plan.files[keys.file].header;
  CHECK(header.size() % 64 == 0);
  CHECK(keys.offset == header.size());
  CHECK(header.substr(0, 8) == std::string("\x93NUMPY\x01\x00", 8));
  CHECK(static_cast<uint8_t>(header[8]) + 256 * static_cast<uint8_t>(header[9]) + 10 ==
        static_cast<int>(header.size()));
  CHECK(header.substr(10, 59) == "{'descr': '<u8', 'fortran_order': False, 'shape': (7,), }  ");
  CHECK(header.back() == '\n');
  CHECK(plan.files[keys.file].bytes == header.size() + 7 * 8);
  // Offsets of the row: embedding first, then the weight.
  CHECK(Find(plan, "features.embedding").row_offset == 0);
  CHECK(Find(plan, "features.weight").row_offset == 16);
}

TEST_CASE("a table that is called as a tensor shares no array with it", "[export]") {
  ModelTables tables = Tables("fm", 3, 0);
  tables.tables[0].name = "bias";
  for (const ExportFormat format : {ExportFormat::kNpy, ExportFormat::kSafetensors}) {
    const ExportPlan plan = Plan(tables, 7, {.format = format, .with_state = true});
    std::set<std::string> names;
    size_t arrays = 0;
    for (const ExportBlock& block : plan.blocks) {
      for (const ExportArray& a : block.arrays) names.insert(a.name);
      arrays += block.arrays.size();
    }
    CHECK(names.size() == arrays);
    CHECK(Find(plan, "bias").shape == Shape{1});
    CHECK(Find(plan, "bias.last_step").shape == Shape{7});
    CHECK(Find(plan, "dense.bias.last_step").shape == Shape{1});
  }
}

TEST_CASE("dense tensors have the shapes of their layers", "[export]") {
  const ModelTables tables = Tables("deepfm", 3, 2);
  const ExportPlan plan = Plan(tables, 0, {.with_state = true, .table = "dense"});
  CHECK(Find(plan, "bias").shape == Shape{1});
  CHECK(Find(plan, "layer_0_weight").shape == Shape{3 * 4 + 2, 5});
  CHECK(Find(plan, "layer_0_bias").shape == Shape{5});
  CHECK(Find(plan, "output_weight").shape == Shape{5, 1});
  // 70 weights lie in one row of 256: the padding is left out, of the state too.
  CHECK(Find(plan, "layer_0_weight").bytes == 14 * 5 * 4);
  CHECK(Find(plan, "layer_0_weight.last_step").shape == Shape{1});
  for (const ExportBlock& block : plan.blocks) CHECK(block.tensor.has_value());
}

TEST_CASE("state follows the segment that it belongs to", "[export]") {
  const ExportPlan plan = Plan(Tables("fm", 3, 0), 5, {.with_state = true, .table = "features"});
  // Weights 5 floats, then m and v of the embedding, then m and v of the weight.
  CHECK(Find(plan, "features.embedding.state.m").row_offset == 5 * 4);
  CHECK(Find(plan, "features.embedding.state.v").row_offset == 9 * 4);
  CHECK(Find(plan, "features.weight.state.m").row_offset == 13 * 4);
  CHECK(Find(plan, "features.weight.state.v").row_offset == 14 * 4);
  CHECK(Find(plan, "features.last_step").row_offset == 15 * 4);
  CHECK(Find(plan, "features.updates").row_offset == 16 * 4);
  CHECK(StateArrays(OptimizerType::kRowwiseAdagrad, 8, 1)[0].floats == 1);
  CHECK(StateArrays(OptimizerType::kSgd, 8, 0).empty());
  CHECK(StateArrays(OptimizerType::kFtrl, 8, 16)[1].name == "n");
  // What this version does not know keeps its bytes.
  CHECK(StateArrays(OptimizerType::kAdam, 8, 17)[0].floats == 17);
}

TEST_CASE("safetensors: shards of whole parts, aligned, without holes", "[export]") {
  const ModelTables tables = Tables("fm", 3, 2);
  // A row has 8 + 5 * 4 bytes; 100 of them in shards of 1000 bytes are 3 parts of 35.
  const ExportPlan plan =
      Plan(tables, 100, {.format = ExportFormat::kSafetensors, .shard_bytes = 1000});
  uint64_t rows = 0;
  std::set<std::string> names;
  for (const ExportBlock& block : plan.blocks) {
    for (const ExportArray& a : block.arrays) CHECK(names.insert(a.name).second);
    if (block.tensor) continue;
    rows += block.rows;
    CHECK(block.rows <= 35);
  }
  CHECK(rows == 100);
  CHECK(names.count("features.part-00001-of-00003.keys") == 1);
  for (size_t f = 0; f < plan.files.size(); ++f) {
    CHECK((plan.files[f].header.size() - 8) % 8 == 0);
    uint64_t bytes = plan.files[f].header.size();
    for (const ExportBlock& block : plan.blocks) {
      for (const ExportArray& a : block.arrays) {
        if (a.file != f) continue;
        bytes += a.bytes;
        CHECK(a.offset % (a.type == ExportType::kU64 ? 8 : 4) == 0);
      }
    }
    CHECK(bytes == plan.files[f].bytes);
    CHECK(bytes - plan.files[f].header.size() <= 1000 + 28);
  }
  // A row always fits, whatever the size of a shard.
  CHECK(Plan(tables, 4, {.format = ExportFormat::kSafetensors, .shard_bytes = 1}).files.size() > 4);
}

TEST_CASE("a table without rows is an empty array", "[export]") {
  for (const ExportFormat format : {ExportFormat::kNpy, ExportFormat::kSafetensors}) {
    const ExportPlan plan = Plan(Tables("lr", 3, 0), 0, {.format = format});
    CHECK(Find(plan, "features.keys").shape == Shape{0});
    CHECK(Find(plan, "features.weight").shape == Shape{0, 1});
  }
}

TEST_CASE("what cannot be planned is told", "[export]") {
  const ModelTables tables = Tables("lr", 3, 0);
  const absl::Status table = PlanExport(tables, {1, 0}, {.table = "embeddings"}).status();
  CHECK(absl::IsInvalidArgument(table));
  CHECK(std::string(table.message()).find("features and dense") != std::string::npos);
  CHECK(absl::IsInvalidArgument(PlanExport(tables, {1, 0}, {.shard_bytes = 0}).status()));
}

}  // namespace
}  // namespace strata

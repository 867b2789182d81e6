#include "proto/job/tables/tables_spec.h"

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/job/job_spec.h"
#include "proto/job/tables/field_tables.h"
#include "proto/job/tables/hashed_tables.h"
#include "proto/job/tables/model_tables.h"
#include "proto/strata/job.pb.h"

namespace strata {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;  // name and column, table

// A csv job whose fields a..d have their tables.
TrainingJob Job(const std::string& model, const std::vector<std::string>& tables,
                const Fields& fields) {
  TrainingJob job;
  job.set_api_version("strata/v1");
  job.set_kind("TrainingJob");
  job.mutable_metadata()->set_name("j");
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_data()->set_format("csv");
  spec.mutable_data()->add_train("/x");
  spec.mutable_data()->mutable_columns()->set_label("y");
  for (const char* c : {"a", "b", "c"}) {
    if (fields.empty()) spec.mutable_data()->mutable_columns()->add_categorical(c);
  }
  if (fields.empty()) spec.mutable_data()->mutable_columns()->add_multi_valued()->set_column("d");
  spec.mutable_model()->set_type(model);
  for (const std::string& name : tables) spec.add_tables()->set_name(name);
  for (const auto& [name, table] : fields) {
    FieldConfig& field = *spec.add_fields();
    field.set_name(name);
    field.set_kind(name == "d" || name < "a" ? "multiValued" : "categorical");
    field.set_table(table);
  }
  return job;
}

const Fields kAll = {{"a", "item"}, {"b", "user"}, {"c", "item"}, {"d", "place"}};
const std::vector<std::string> kThree = {"item", "user", "place"};

std::string ErrorOf(TrainingJob job) { return std::string(ResolveJob(job).message()); }

TEST_CASE("tables of a job: defaults, numbers, and the table of each field", "[tables_spec]") {
  TrainingJob job = Job("deepfm", kThree, kAll);
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_model()->set_embedding_dim(6);
  spec.mutable_training()->set_pull_codec("bf16");
  spec.mutable_optimizer()->mutable_sparse()->set_learning_rate(0.5f);
  spec.mutable_tables(1)->mutable_optimizer()->set_type("adam");
  spec.mutable_tables(1)->set_pull_codec("int8");
  spec.mutable_tables(1)->set_init_scale(0.25f);
  spec.mutable_tables(2)->mutable_linear()->set_learning_rate(0.125f);
  spec.mutable_tables(2)->mutable_life_cycle()->mutable_removal()->set_ttl_steps(7);
  REQUIRE(ResolveJob(job).ok());
  for (const TableConfig& t : spec.tables()) CHECK(t.dim() == 6);
  CHECK(spec.tables(0).pull_codec() == "bf16");
  CHECK(spec.tables(1).pull_codec() == "int8");
  // Resolved once, nothing changes any more.
  TrainingJob again = job;
  REQUIRE(ResolveJob(again).ok());
  CHECK(again.SerializeAsString() == job.SerializeAsString());

  const auto model = MakeModelTables(spec, 4, 0);
  REQUIRE(model.ok());
  REQUIRE(model->tables.size() == 4);
  const std::vector<std::string> names = {"item", "dense", "user", "place"};
  for (uint32_t t = 0; t < 4; ++t) {
    CHECK(model->tables[t].id == TableId(t));
    CHECK(model->tables[t].name == names[t]);
    CHECK((model->tables[t].kind == TableKind::kDense) == (t == 1));
    if (t != 1) CHECK(model->tables[t].dim() == 7);
  }
  CHECK(model->several());
  CHECK(model->embedding_dim == 6);
  CHECK(model->field_tables == std::vector<uint32_t>{0, 2, 0, 3});
  CHECK(model->tables[0].segments[0].optimizer.type == OptimizerType::kAdagrad);
  CHECK(model->tables[0].segments[0].optimizer.learning_rate == 0.5f);
  CHECK(model->tables[2].segments[0].optimizer.type == OptimizerType::kAdam);
  CHECK(model->tables[2].segments[0].initializer.scale == 0.25f);
  CHECK(model->tables[2].segments[1].optimizer.type == OptimizerType::kAdagrad);
  CHECK(model->tables[3].segments[0].optimizer.learning_rate == 0.5f);
  CHECK(model->tables[3].segments[1].optimizer.learning_rate == 0.125f);
  CHECK_FALSE(model->tables[0].life_cycle.removal.any());
  CHECK(model->tables[3].life_cycle.removal.ttl_steps == 7);
}

TEST_CASE("a table's share of DRAM is 1 where none is given, and stays absent", "[tables_spec]") {
  TrainingJob job = Job("deepfm", kThree, kAll);
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_tables(1)->set_dram_share(7);
  REQUIRE(ResolveJob(job).ok());
  CHECK_FALSE(spec.tables(0).has_dram_share());  // programs that do not know it can read the job
  const auto model = MakeModelTables(spec, 4, 0);
  REQUIRE(model.ok());
  const std::vector<uint32_t> shares = {1, 1, 7, 1};
  for (uint32_t t = 0; t < 4; ++t) CHECK(model->tables[t].dram_share == shares[t]);
  // A table says nothing else by it: rows have their shape and number.
  TrainingJob without = job;
  without.mutable_spec()->mutable_tables(1)->clear_dram_share();
  auto other = MakeModelTables(without.spec(), 4, 0);
  REQUIRE(other.ok());
  other->tables[2].dram_share = 7;
  CHECK(other->tables == model->tables);
  // Nor is a job read that was not looked at.
  spec.mutable_tables(1)->set_dram_share(0);
  CHECK(MakeHashedTables(spec).status().message() ==
        "spec.tables[1].dramShare is 0; it must be 1 to 1000000");
}

TEST_CASE("the model's width is of tables that say none", "[tables_spec]") {
  for (const char* type : {"deepfm", "mmoe", "din"}) {
    INFO(type);
    TrainingJob job = Job(type, kThree, kAll);
    job.mutable_spec()->mutable_model()->set_embedding_dim(8);
    for (TableConfig& t : *job.mutable_spec()->mutable_tables()) t.set_dim(4);
    CHECK(ErrorOf(job) ==
          "spec.model.embeddingDim: 8 is the width of no table, as each of spec.tables says its "
          "own dim; remove it");
    for (TableConfig& t : *job.mutable_spec()->mutable_tables()) t.set_dim(8);
    CHECK(ErrorOf(job) == "");
    job.mutable_spec()->mutable_model()->clear_embedding_dim();
    for (TableConfig& t : *job.mutable_spec()->mutable_tables()) t.set_dim(4);
    REQUIRE(ErrorOf(job) == "");
    REQUIRE(ResolveJob(job).ok());
    CHECK(ErrorOf(job) == "");
  }
}

TEST_CASE("a job without tables has features, and all fields are of it", "[tables_spec]") {
  TrainingJob job = Job("deepfm", {}, {});
  REQUIRE(ResolveJob(job).ok());
  const auto model = MakeModelTables(job.spec(), 4, 0);
  REQUIRE(model.ok());
  CHECK(model->tables.size() == 2);
  CHECK(model->tables[0].name == "features");
  CHECK(model->field_tables.empty());
  CHECK_FALSE(model->several());
  // One table by another name is that table.
  TrainingJob one =
      Job("deepfm", {"all"}, {{"a", "all"}, {"b", "all"}, {"c", "all"}, {"d", "all"}});
  REQUIRE(ResolveJob(one).ok());
  auto named = MakeModelTables(one.spec(), 4, 0);
  REQUIRE(named.ok());
  CHECK_FALSE(named->several());
  CHECK(named->field_tables.empty());
  named->tables[0].name = "features";
  CHECK(named->tables == model->tables);
}

TEST_CASE("tables and fields that do not fit are named", "[tables_spec]") {
  const auto with = [](auto change) {
    TrainingJob job = Job("deepfm", kThree, kAll);
    change(*job.mutable_spec());
    return ErrorOf(job);
  };
  CHECK(ErrorOf(Job("deepfm", kThree, kAll)) == "");
  CHECK(with([](JobSpec& s) { s.mutable_tables(1)->set_name("item"); }) ==
        "spec.tables[1].name: 'item' names an earlier table too");
  CHECK(with([](JobSpec& s) { s.mutable_tables(1)->set_name(""); }) ==
        "spec.tables[1].name: is missing; name the table");
  CHECK(with([](JobSpec& s) { s.mutable_tables(1)->set_name("dense"); }) ==
        "spec.tables[1].name: 'dense' is the table of the dense tensors; take another name");
  CHECK(with([](JobSpec& s) { s.mutable_tables(1)->set_name("a b"); }) ==
        "spec.tables[1].name: 'a b' may hold letters, digits, '-' and '_' only, and not begin with "
        "'-'");
  CHECK(with([](JobSpec& s) { s.mutable_tables(2)->set_dim(0); }) ==
        "spec.tables[2].dim: 0 is outside the limits; give a number from 1 to 4096");
  CHECK(with([](JobSpec& s) { s.mutable_tables(2)->set_pull_codec("fp8"); }) ==
        "spec.tables[2].pullCodec: 'fp8' is not one of: float32, bf16, int8");
  for (const uint32_t share : {0u, 1'000'001u, ~0u}) {
    CHECK(with([share](JobSpec& s) { s.mutable_tables(1)->set_dram_share(share); }) ==
          absl::StrCat("spec.tables[1].dramShare: ", share,
                       " is outside the limits; give a number from 1 to 1000000"));
  }
  CHECK(with([](JobSpec& s) { s.mutable_tables(1)->set_dram_share(1'000'000); }) == "");
  CHECK(with([](JobSpec& s) {
          s.mutable_tables(2)->mutable_optimizer()->set_type("lion");
        }).rfind("spec.tables[2].optimizer.type: 'lion' is not one of: ", 0) == 0);
  CHECK(with([](JobSpec& s) {
          s.mutable_tables(0)->mutable_life_cycle()->mutable_admission()->set_type("exact");
        }) ==
        "spec.tables[0].lifeCycle.admission.minSteps: is missing; give the steps that must touch a "
        "feature, 2 to 255");
  CHECK(with([](JobSpec& s) { s.mutable_fields(1)->set_table("users"); }) ==
        "spec.fields[1].table: 'users' of field 'b' is no table of the job; there are: item, user, "
        "place");
  CHECK(with([](JobSpec& s) { s.mutable_fields(1)->clear_table(); }) ==
        "spec.fields[1].table: is missing; name a table of spec.tables for field 'b': item, user, "
        "place");
  CHECK(with([](JobSpec& s) { s.mutable_fields(3)->set_table("user"); }) ==
        "spec.tables[2] (place): no field of the data names it in spec.fields; remove it or name "
        "it");
  CHECK(with([](JobSpec& s) { s.mutable_tables(1)->set_dim(8); }) ==
        "spec.model.type deepfm takes embeddings of one width, and the tables of its fields have "
        "several: item (dim 16: fields a, c), user (dim 8: fields b), place (dim 16: fields d); "
        "give them one dim");
  CHECK(with([](JobSpec& s) { s.clear_tables(); }) ==
        "spec.fields[0].table: 'item' of field 'a' is no table of the job; there are: features");
  TrainingJob lr = Job("lr", kThree, kAll);
  REQUIRE(ResolveJob(lr).ok());
  lr.mutable_spec()->mutable_tables(0)->set_dim(4);
  CHECK(ErrorOf(lr) ==
        "spec.tables[0].dim: is for embeddings, and spec.model.type is lr, which has none; remove "
        "it");
}

TEST_CASE("fields of libffm are numbers, and libfm has none", "[tables_spec]") {
  TrainingJob job = Job("fm", {"x", "y"}, {{"0", "x"}, {"1", "y"}, {"2", "x"}});
  job.mutable_spec()->mutable_data()->clear_columns();
  job.mutable_spec()->mutable_data()->set_format("libffm");
  REQUIRE(ResolveJob(job).ok());
  const auto model = MakeModelTables(job.spec(), 3, 0);
  REQUIRE(model.ok());
  CHECK(model->field_tables == std::vector<uint32_t>{0, 2, 0});
  CHECK(MakeModelTables(job.spec(), 4, 0).status().message() ==
        "spec.fields: none is of column '3' of the data; give one, with a table of spec.tables: x, "
        "y");
  CHECK_FALSE(MakeModelTables(job.spec(), 1, 0).ok());  // y has no field
  job.mutable_spec()->mutable_data()->set_format("libfm");
  CHECK(MakeModelTables(job.spec(), 3, 0).status().message() ==
        "spec.tables has 2 tables, and features of format libfm have no fields that could name "
        "them; give one table, or libffm");
}

TEST_CASE("sixty-four tables", "[tables_spec]") {
  TrainingJob job = Job("fm", {}, {});
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_data()->clear_columns();
  spec.mutable_data()->set_format("libffm");
  for (int i = 0; i < 64; ++i) {
    spec.add_tables()->set_name(absl::StrCat("t", i));
    spec.add_fields()->set_name(absl::StrCat(63 - i));
    spec.mutable_fields(i)->set_kind("multiValued");
    spec.mutable_fields(i)->set_table(absl::StrCat("t", i));
  }
  REQUIRE(ResolveJob(job).ok());
  const auto model = MakeModelTables(spec, 64, 0);
  REQUIRE(model.ok());
  CHECK(model->tables.size() == 65);
  CHECK(model->field_tables[63] == 0);
  CHECK(model->field_tables[0] == 64);
  CHECK(model->tables[64].name == "t63");
}

}  // namespace
}  // namespace strata

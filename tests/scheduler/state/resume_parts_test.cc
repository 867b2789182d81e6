#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/strata/job.pb.h"
#include "tests/scheduler/state/saved_jobs.h"

namespace strata::scheduler {
namespace {

// A csv job of tables `names` and of fields, each with the table of its place.
TrainingJob TablesJob(const std::vector<std::string>& names) {
  TrainingJob job = CsvJob("din", {});
  JobSpec& spec = *job.mutable_spec();
  for (const std::string& name : names) {
    TableConfig& table = *spec.add_tables();
    table.set_name(name);
    table.set_dim(4);
    table.mutable_optimizer()->set_type("adagrad");
    FieldConfig& field = *spec.add_fields();
    field.set_name(absl::StrCat("of_", name));
    field.set_column(absl::StrCat("of_", name));
    field.set_kind("categorical");
    field.set_table(name);
  }
  return job;
}

TEST_CASE("a job resumes with its tables, in their order, and each field with its own",
          "[scheduler][resume]") {
  TrainingJob saved = JobOf("adagrad", "", "adam");
  saved.mutable_spec()->mutable_data()->set_format("libffm");  // of three fields
  const auto set_table = [](TableConfig& table, const char* name, uint32_t dim) {
    table.set_name(name);
    table.set_dim(dim);
    table.mutable_optimizer()->set_type("adam");
  };
  const auto set_field = [](FieldConfig& field, const char* name, const char* table) {
    field.set_name(name);
    field.set_column(name);
    field.set_kind("multiValued");
    field.set_table(table);
  };
  set_table(*saved.mutable_spec()->add_tables(), "item", 8);
  set_table(*saved.mutable_spec()->add_tables(), "user", 8);
  set_field(*saved.mutable_spec()->add_fields(), "0", "item");
  set_field(*saved.mutable_spec()->add_fields(), "1", "user");
  set_field(*saved.mutable_spec()->add_fields(), "2", "user");
  CHECK(ResumeProblem(saved, saved) == "OK");
  TrainingJob now = saved;
  now.mutable_spec()->mutable_tables()->SwapElements(0, 1);
  CHECK(ResumeProblem(now, saved) ==
        absl::StrCat(kOtherModel, "table item came before user, and comes after it now"));
  now = saved;
  now.mutable_spec()->mutable_fields(1)->set_table("item");
  CHECK(ResumeProblem(now, saved) == absl::StrCat(kOtherModel, "field 1: table was user, is item"));
  // Their order is not the data's.
  now = saved;
  now.mutable_spec()->mutable_fields()->SwapElements(0, 1);
  CHECK(ResumeProblem(now, saved) == "OK");
  now = saved;
  now.mutable_spec()->clear_tables();
  for (FieldConfig& field : *now.mutable_spec()->mutable_fields()) field.set_table("features");
  CHECK(ResumeProblem(now, saved) ==
        absl::StrCat(kOtherModel,
                     "table features embedding(4) + weight(1): the checkpoint has none\n"
                     "  table item embedding(8) + weight(1): the job has none\n"
                     "  table user embedding(8) + weight(1): the job has none\n"
                     "  field 0: table was item, is features\n"
                     "  field 1: table was user, is features\n"
                     "  field 2: table was user, is features"));
}

TEST_CASE("a job resumes with other shares of DRAM than it had", "[scheduler][resume]") {
  const TrainingJob saved = TablesJob({"item", "user"});
  TrainingJob now = saved;
  now.mutable_spec()->mutable_tables(0)->set_dram_share(9);
  CHECK(ResumeProblem(now, saved) == "OK");
  CHECK(ResumeProblem(saved, now) == "OK");
  CHECK(SavedBy(now).schema().SerializeAsString() == SavedBy(saved).schema().SerializeAsString());
}

TEST_CASE("a table that is named is the one that had no name", "[scheduler][resume]") {
  TrainingJob saved = JobOf("adagrad", "", "adam");
  saved.mutable_spec()->mutable_model()->set_type(
      "deepfm");  // whose first layer is as wide as rows
  saved.mutable_spec()->mutable_model()->add_hidden(8);
  TrainingJob now = saved;
  TableConfig& table = *now.mutable_spec()->add_tables();
  table.set_name("features");
  table.set_dim(saved.spec().model().embedding_dim());
  table.mutable_optimizer()->set_type("adagrad");
  now.mutable_spec()->mutable_model()->set_embedding_dim(16);  // which its own says
  CHECK(ResumeProblem(now, saved) == "OK");
  CHECK(ResumeProblem(saved, now) == "OK");
  now.mutable_spec()->mutable_tables(0)->set_dim(8);
  CHECK(ResumeProblem(now, saved) == absl::StrCat(kOtherModel,
                                                  "table features was embedding(4) + weight(1), is "
                                                  "embedding(8) + weight(1)"));
}

TEST_CASE("each table and field that differs from the checkpoint has a line of its own",
          "[scheduler][resume]") {
  std::vector<std::string> names;
  for (int i = 0; i < 64; ++i) names.push_back(absl::StrCat("t", i));
  const TrainingJob many = TablesJob(names);
  TrainingJob now = many;
  now.mutable_spec()->mutable_tables(40)->set_dim(8);
  CHECK(ResumeProblem(now, many) ==
        absl::StrCat(kOtherModel, "table t40 was embedding(4), is embedding(8)"));
  now = many;
  now.mutable_spec()->mutable_tables(2)->mutable_optimizer()->set_type("ftrl");
  CHECK(ResumeProblem(now, many) ==
        absl::StrCat(kOtherModel, "table t2: embedding: the optimizer was adagrad, is ftrl"));

  // Whatever has become of tables, nothing of fields is left out.
  TrainingJob saved = TablesJob({"item", "user"});
  FieldConfig& price = *saved.mutable_spec()->add_fields();
  price.set_name("price");
  price.set_column("price");
  price.set_kind("numeric");
  now = saved;
  JobSpec& spec = *now.mutable_spec();
  spec.mutable_tables(0)->set_dim(8);
  spec.mutable_tables(1)->set_name("people");
  spec.mutable_fields(0)->set_hash_seed(9);
  spec.mutable_fields(1)->set_table("people");
  spec.mutable_fields(1)->set_hash_seed(3);
  spec.mutable_fields(1)->mutable_vocabulary()->set_file("v");
  spec.mutable_fields(1)->mutable_vocabulary()->set_out_of_vocabulary(2);
  spec.mutable_fields(2)->mutable_transform()->set_type("log");
  const std::string parts =
      "table item was embedding(4), is embedding(8)\n"
      "  table people embedding(4): the checkpoint has none\n"
      "  table user embedding(4): the job has none\n"
      "  field of_item: hashSeed was 0, is 9\n"
      "  field of_user: table was user, is people; hashSeed was 0, is 3; vocabulary was none, is "
      "a file, with outOfVocabulary 2\n"
      "  field price: transform was none, is log";
  CHECK(ResumeProblem(now, saved) == kOtherModel + parts);
  // Nor beside a setting.
  spec.mutable_model()->set_hidden(0, 9);
  const std::string both = ResumeProblem(now, saved);
  CHECK(absl::StrContains(both, ":\n  spec.model.hidden is [9], was [8]\n  table item was"));
  CHECK(absl::EndsWith(both, parts));

  // A column is told with the field that reads it.
  now = saved;
  now.mutable_spec()->mutable_fields(0)->set_column("item_id");
  CHECK(ResumeProblem(now, saved) ==
        absl::StrCat(kOtherModel, "field of_item: column was of_item, is item_id"));
}

// Keys of csv hashed the column's place among the categories.
TEST_CASE("a job resumes with the columns that it had", "[scheduler][resume]") {
  const TrainingJob saved = CsvJob("fm", {"user", "item"});
  CHECK(ResumeProblem(saved, saved) == "OK");
  const std::string anew = kOtherModel;
  CHECK(ResumeProblem(CsvJob("fm", {"item", "user"}), saved) ==
        anew + "field user came before item, and comes after it now");
  CHECK(ResumeProblem(CsvJob("fm", {"shop", "user", "item"}), saved) ==
        anew + "field shop: the checkpoint has none");
  CHECK(ResumeProblem(CsvJob("fm", {"user"}), saved) == anew + "field item: the job has none");
  TrainingJob label = saved;
  label.mutable_spec()->mutable_data()->mutable_columns()->set_label("z");
  CHECK(ResumeProblem(label, saved) == anew + "label label: column was y, is z");
}

TEST_CASE("fields that go by a table, and numbers, resume with their columns",
          "[scheduler][resume]") {
  TrainingJob saved = CsvJob("fm", {"user", "item"});
  JobSpec& spec = *saved.mutable_spec();
  spec.mutable_data()->mutable_columns()->clear_categorical();
  TableConfig& table = *spec.add_tables();
  table.set_name("both");
  table.set_dim(4);
  table.mutable_optimizer()->set_type("adagrad");
  for (const char* name : {"cat", "user", "age", "price"}) {
    FieldConfig& field = *spec.add_fields();
    field.set_name(name);
    field.set_column(name);
    const bool number = spec.fields_size() > 2;
    field.set_kind(number ? "numeric" : "categorical");
    if (!number) field.set_table("both");
  }
  CHECK(ResumeProblem(saved, saved) == "OK");
  for (const int first : {0, 2}) {
    TrainingJob now = saved;
    FieldConfig &a = *now.mutable_spec()->mutable_fields(first),
                &b = *now.mutable_spec()->mutable_fields(first + 1);
    std::swap(*a.mutable_column(), *b.mutable_column());
    const std::string problem = ResumeProblem(now, saved);
    INFO(problem);
    for (const FieldConfig* field : {&a, &b}) {
      CHECK(absl::StrContains(problem, "field " + field->name() + ": column was " + field->name() +
                                           ", is " + field->column()));
    }
    CHECK(std::count(problem.begin(), problem.end(), '\n') == 2);
  }
}

}  // namespace
}  // namespace strata::scheduler

#include "proto/job/fields/field_form.h"

#include <google/protobuf/text_format.h>

#include <catch2/catch.hpp>
#include <string>
#include <utility>

#include "proto/job/fields/field_plan.h"
#include "proto/job/job_spec.h"
#include "proto/job/schema/schema.h"
#include "proto/job/schema/schema_mapping.h"
#include "proto/job/schema/schema_start.h"
#include "proto/strata/job.pb.h"
#include "tests/proto/job/fields/fields_job.h"

namespace strata {
namespace {

TEST_CASE("columns and fields say the same, there and back", "[job]") {
  TrainingJob columns;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(R"(
    api_version: "strata/v1" kind: "TrainingJob" metadata { name: "j" }
    spec {
      data { format: "csv" train: "t.csv" columns {
        label: "is clicked" numeric: "n" categorical: "c" categorical: "d" delimiter: ";"
        multi_valued { column: "t" separator: "," pooling: "mean" } ignored: "*" } }
      model { type: "lr" }
    })",
                                                        &columns));
  REQUIRE(ResolveJob(columns).ok());
  TrainingJob fields = columns;
  REQUIRE(ToFieldsForm(*fields.mutable_spec()).ok());
  REQUIRE(ResolveJob(fields).ok());
  CHECK(fields.spec().fields_size() == 4);
  CHECK(fields.spec().data().columns().label() == "is clicked");
  const auto same = [](const FieldsPlan& a, const FieldsPlan& b) {
    REQUIRE(a.fields.size() == b.fields.size());
    for (size_t f = 0; f < a.fields.size(); ++f) {
      CHECK(a.fields[f].column == b.fields[f].column);
      CHECK(a.fields[f].number == b.fields[f].number);
      CHECK(a.fields[f].kind == b.fields[f].kind);
      CHECK(a.fields[f].pooling == b.fields[f].pooling);
      CHECK(a.fields[f].separator == b.fields[f].separator);
      CHECK(a.fields[f].seed_name == b.fields[f].seed_name);
    }
  };
  same(PlanFields(columns.spec()), PlanFields(fields.spec()));
  TrainingJob back = fields;
  REQUIRE(ToColumnsForm(*back.mutable_spec()).ok());
  REQUIRE(ResolveJob(back).ok());
  CHECK(back.SerializeAsString() == columns.SerializeAsString());
}

TEST_CASE("metrics and the schema are the same in both forms", "[job]") {
  const auto forms = [](const std::string& user) {
    TrainingJob columns = FieldsJob();
    JobSpec& spec = *columns.mutable_spec();
    spec.clear_fields();
    spec.mutable_data()->clear_columns();
    REQUIRE(google::protobuf::TextFormat::ParseFromString(
        R"(categorical: "item" multi_valued { column: "tags" pooling: "mean" })",
        spec.mutable_data()->mutable_columns()));
    spec.mutable_data()->mutable_columns()->add_categorical(user);
    spec.mutable_evaluation()->add_metrics("gauc(" + user + ")");
    REQUIRE(ResolveJob(columns).ok());
    TrainingJob fields = columns;
    REQUIRE(ToFieldsForm(*fields.mutable_spec()).ok());
    REQUIRE(ResolveJob(fields).ok());
    TrainingJob back = fields;
    REQUIRE(ToColumnsForm(*back.mutable_spec()).ok());
    REQUIRE(ResolveJob(back).ok());
    CHECK(back.spec().evaluation().metrics(0) == "gauc(" + user + ")");
    return std::pair(columns, fields);
  };
  const auto [columns, fields] = forms("user");
  const auto schema_of = [](const TrainingJob& job) {
    const auto schema = DeclaredSchema(job.spec());
    REQUIRE(schema.ok());
    return *schema;
  };
  CHECK(CheckResume(MapSchemas(schema_of(columns), schema_of(fields))).message() == "");
  CHECK(CheckResume(MapSchemas(schema_of(fields), schema_of(columns))).message() == "");
}

TEST_CASE("a form in which fields would have other names is refused", "[job]") {
  TrainingJob columns = FieldsJob();
  JobSpec& spec = *columns.mutable_spec();
  spec.clear_fields();
  for (const char* c : {"a_b", "a b"}) spec.mutable_data()->mutable_columns()->add_categorical(c);
  spec.mutable_data()->mutable_columns()->add_ignored("*");
  spec.mutable_evaluation()->add_metrics("gauc(a b)");
  REQUIRE(ResolveJob(columns).ok());
  CHECK(ToFieldsForm(spec).message() ==
        "spec.data.columns: column 'a b' is no name of a field (letters, digits, '_' and '-', at "
        "most 63), and under another --resume would find another field; keep spec.data.columns, or "
        "rename the column in the data");
  const std::string longest(63, 'c');
  spec.mutable_data()->mutable_columns()->set_categorical(1, longest);
  spec.mutable_evaluation()->set_metrics(0, "gauc(" + longest + ")");
  CHECK(ToFieldsForm(spec).ok());
  CHECK(spec.fields(1).name() == longest);
  TrainingJob swapped = FieldsJob();
  swapped.mutable_spec()->clear_fields();
  for (const auto& [name, column] : {std::pair("a", "b"), std::pair("b", "a")}) {
    FieldConfig& field = *swapped.mutable_spec()->add_fields();
    field.set_name(name);
    field.set_column(column);
    field.set_kind("categorical");
  }
  swapped.mutable_spec()->mutable_evaluation()->add_metrics("gauc(a)");
  REQUIRE(ResolveJob(swapped).ok());
  CHECK(ToColumnsForm(*swapped.mutable_spec()).message() ==
        "spec.fields[0].name: field 'a' has another name than its column 'b', which "
        "spec.data.columns cannot say");
}

// Keys of columns hash the column's name, and those of fields beside spec.tables the table's.
TEST_CASE("columns with a table are fields without one, or have no such form", "[job]") {
  TrainingJob columns = FieldsJob();
  JobSpec& spec = *columns.mutable_spec();
  spec.clear_fields();
  for (const char* c : {"user", "item"}) spec.mutable_data()->mutable_columns()->add_categorical(c);
  spec.mutable_data()->mutable_columns()->add_ignored("*");
  spec.add_tables()->set_name("features");
  REQUIRE(ResolveJob(columns).ok());
  TrainingJob fields = columns;
  REQUIRE(ToFieldsForm(*fields.mutable_spec()).ok());
  REQUIRE(ResolveJob(fields).ok());
  CHECK(fields.spec().tables().empty());
  const FieldsPlan plan = PlanFields(columns.spec()), other = PlanFields(fields.spec());
  REQUIRE(other.fields.size() == 2);
  for (size_t f = 0; f < 2; ++f) {
    CHECK(plan.fields[f].seed_name == plan.fields[f].column);
    CHECK(other.fields[f].seed_name == plan.fields[f].seed_name);
  }
  const auto saved = DeclaredSchema(columns.spec()), now = DeclaredSchema(fields.spec());
  REQUIRE((saved.ok() && now.ok()));
  CHECK(CheckResume(MapSchemas(*saved, *now)).message() == "");
  // What the table has of its own the fields' would not.
  spec.mutable_tables(0)->set_dim(8);
  CHECK_FALSE(ToFieldsForm(spec).ok());
}

TEST_CASE("what columns cannot say is named", "[job]") {
  const auto problem = [](const char* field) {
    TrainingJob job = FieldsJob();
    job.mutable_spec()->clear_fields();
    REQUIRE(google::protobuf::TextFormat::MergeFromString(field, job.mutable_spec()->add_fields()));
    REQUIRE(ResolveJob(job).ok());
    return std::string(ToColumnsForm(*job.mutable_spec()).message());
  };
  CHECK(problem("name: 'f' kind: 'numeric' transform { type: 'log' }") ==
        "spec.fields[0].transform: field 'f' has a transform, which spec.data.columns cannot say");
  CHECK(problem("name: 'f' kind: 'multiValued' pooling: 'max'") ==
        "spec.fields[0].pooling: field 'f' is pooled by max, which spec.data.columns cannot say");
  CHECK(
      problem("name: 'f' kind: 'multiValued'") ==
      "spec.fields[0].defaultValue: field 'f' has no category for a column without a value, which "
      "spec.data.columns cannot say");
  CHECK(
      problem("name: 'f' kind: 'categorical' vocabulary { file: 'v' }") ==
      "spec.fields[0].vocabulary: field 'f' has a vocabulary, which spec.data.columns cannot say");
}

TEST_CASE("an empty default of a category is the one that columns have", "[job]") {
  TrainingJob job = FieldsJob();
  job.mutable_spec()->clear_fields();
  REQUIRE(google::protobuf::TextFormat::MergeFromString(
      "name: 'f' kind: 'categorical' default_value: ''", job.mutable_spec()->add_fields()));
  REQUIRE(ResolveJob(job).ok());
  CHECK(ToColumnsForm(*job.mutable_spec()).message() == "");
}

// Each was compared with each field of the format.
TEST_CASE("as many fields as libffm has have a short form", "[job]") {
  TrainingJob job = FieldsJob();
  JobSpec& spec = *job.mutable_spec();
  spec.clear_fields();
  spec.clear_labels();
  spec.mutable_data()->set_format("libffm");
  for (int i = 65535; i >= 0; --i) {
    FieldConfig& field = *spec.add_fields();
    field.set_name(std::to_string(i));
    field.set_kind("multiValued");
  }
  REQUIRE(ResolveJob(job).ok());
  JobSpec short_form = spec;
  CHECK(ToColumnsForm(short_form).ok());
  CHECK(short_form.fields().empty());
  spec.mutable_fields(65530)->set_name("item");
  CHECK_FALSE(ToColumnsForm(spec).ok());
}

TEST_CASE("criteo's own fields are its short form", "[job]") {
  TrainingJob job = FieldsJob();
  JobSpec& spec = *job.mutable_spec();
  spec.clear_fields();
  spec.clear_labels();
  spec.mutable_data()->set_format("criteo");
  REQUIRE(ResolveJob(job).ok());
  TrainingJob fields = job;
  REQUIRE(ToFieldsForm(*fields.mutable_spec()).ok());
  REQUIRE(ResolveJob(fields).ok());
  CHECK(fields.spec().fields_size() == 39);
  TrainingJob back = fields;
  REQUIRE(ToColumnsForm(*back.mutable_spec()).ok());
  CHECK(back.SerializeAsString() == job.SerializeAsString());
}

}  // namespace
}  // namespace strata

#include "proto/job/fields/field_form.h"

#include <google/protobuf/text_format.h>

#include <catch2/catch.hpp>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
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
  CHECK(fields.spec().data().columns().label().empty());
  REQUIRE(fields.spec().labels_size() == 1);
  CHECK(fields.spec().labels(0).name() == "label");
  CHECK(fields.spec().labels(0).column() == "is clicked");
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
  CHECK(ToFieldsForm(spec).status().message() ==
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
  CHECK(ToColumnsForm(*swapped.mutable_spec()).status().message() ==
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
    return std::string(ToColumnsForm(*job.mutable_spec()).status().message());
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
  CHECK(ToColumnsForm(*job.mutable_spec()).ok());
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

// The other form of a job, resolved, and its notes.
FormNotes Change(const std::string& form, TrainingJob& job) {
  const auto notes =
      form == "fields" ? ToFieldsForm(*job.mutable_spec()) : ToColumnsForm(*job.mutable_spec());
  INFO(notes.status());
  REQUIRE(notes.ok());
  const absl::Status resolved = ResolveJob(job);
  INFO(resolved);
  REQUIRE(resolved.ok());
  return *notes;
}

// What is wrong with the other form, or empty. A job that has none stays as it was.
std::string Refusal(const std::string& form, TrainingJob job) {
  const absl::Status resolved = ResolveJob(job);
  INFO(resolved);
  REQUIRE(resolved.ok());
  const std::string before = job.SerializeAsString();
  const auto notes =
      form == "fields" ? ToFieldsForm(*job.mutable_spec()) : ToColumnsForm(*job.mutable_spec());
  if (!notes.ok()) CHECK(job.SerializeAsString() == before);
  return std::string(notes.status().message());
}

TrainingJob ColumnsJob(const std::string& columns) {
  TrainingJob job = FieldsJob();
  JobSpec& spec = *job.mutable_spec();
  spec.clear_fields();
  spec.clear_labels();
  REQUIRE(google::protobuf::TextFormat::ParseFromString(columns,
                                                        spec.mutable_data()->mutable_columns()));
  REQUIRE(ResolveJob(job).ok());
  return job;
}

// A job over a format that is not csv, without fields and labels.
TrainingJob FormatJob(const std::string& format) {
  TrainingJob job = FieldsJob();
  JobSpec& spec = *job.mutable_spec();
  spec.clear_fields();
  spec.clear_labels();
  spec.mutable_data()->set_format(format);
  return job;
}

TEST_CASE("what another form of the label or the columns means else is told", "[job]") {
  const std::string empty =
      "in spec.labels a line whose label 'y' is empty says nothing of it, and is a good line; in "
      "spec.data.columns.label it is a bad one";
  const std::string empty_back =
      "in spec.data.columns.label a line whose label 'y' is empty is a bad one; in spec.labels it "
      "says nothing of it, and is a good line";
  TrainingJob job = ColumnsJob("label: 'y' categorical: 'c' ignored: '*'");
  const std::string columns = job.SerializeAsString();
  CHECK(Change("fields", job) == FormNotes{empty});
  CHECK(job.spec().labels(0).name() == "y");
  CHECK(job.spec().labels(0).column() == "y");
  const std::string fields = job.SerializeAsString();
  CHECK(Change("fields", job).empty());  // it is of this form
  CHECK(job.SerializeAsString() == fields);
  CHECK(Change("columns", job) == FormNotes{empty_back});
  CHECK(job.SerializeAsString() == columns);
  CHECK(Change("columns", job).empty());
  // Fields beside a label of the short form are no whole form.
  Change("fields", job);
  job.mutable_spec()->clear_labels();
  job.mutable_spec()->mutable_data()->mutable_columns()->set_label("y");
  REQUIRE(ResolveJob(job).ok());
  CHECK(Change("fields", job) == FormNotes{empty});
  CHECK(job.SerializeAsString() == fields);

  TrainingJob strict = ColumnsJob("label: 'a b' categorical: 'c' ignored: 'd'");
  const FormNotes notes = Change("fields", strict);
  REQUIRE(notes.size() == 3);
  CHECK(notes[0] ==
        "with spec.fields a column of the data that no field names is not used; spec.data.columns "
        "refuses one that is in no list");
  CHECK(notes[1] ==
        "the label of column 'a b' is called 'label' in spec.labels, in metrics and predictions "
        "too");
  CHECK(Change("columns", strict)[0] ==
        "label 'label' is called 'a b' without spec.labels, in metrics and predictions too");

  TrainingJob criteo = FormatJob("criteo");
  criteo.mutable_spec()->add_labels()->set_name("click");
  REQUIRE(ResolveJob(criteo).ok());
  CHECK(Change("fields", criteo).empty());
  CHECK(Change("columns", criteo) ==
        FormNotes{"label 'click' is called 'label' without spec.labels, in metrics and predictions "
                  "too"});
  CHECK(Change("fields", criteo).empty());  // an empty label is a bad line in either form
  CHECK(criteo.spec().labels(0).name() == "label");
}

TEST_CASE("labels that are more than a column are refused by what they are more", "[job]") {
  const auto problem = [](const char* label) {
    TrainingJob job = ColumnsJob("label: 'y' categorical: 'c' ignored: '*'");
    job.mutable_spec()->mutable_data()->mutable_columns()->clear_label();
    REQUIRE(google::protobuf::TextFormat::MergeFromString(label, job.mutable_spec()));
    return Refusal("columns", job);
  };
  CHECK(problem("labels { name: 'y' } labels { name: 'z' }") ==
        "spec.labels[1]: label 'z' is a second one, which spec.data cannot say");
  CHECK(problem("labels { name: 'y' kind: 'real' }") ==
        "spec.labels[0].kind: label 'y' is real, which spec.data cannot say");
  CHECK(problem("labels { name: 'y' weight: 0.5 }") ==
        "spec.labels[0].weight: label 'y' has a loss of weight 0.5, which spec.data cannot say");
  CHECK(problem("labels { name: 'y' mean: 0.25 }") ==
        "spec.labels[0].mean: label 'y' states the mean 0.25, which spec.data cannot say");
  CHECK(problem("labels { name: 'y' kind: 'binary' loss: 'logloss' weight: 1 }") == "");
}

// Gives the job one table, with what `says` says of it.
void GiveTable(const std::string& says, JobSpec& spec) {
  REQUIRE(google::protobuf::TextFormat::ParseFromString(says, spec.add_tables()));
  for (FieldConfig& f : *spec.mutable_fields()) f.set_table(spec.tables(0).name());
}

TEST_CASE("a table that says nothing goes with the fields, and others stay", "[job]") {
  for (const char* format : {"criteo", "libffm", "libfm"}) {
    INFO(format);
    const auto with = [&](const std::string& table) {
      TrainingJob job = FormatJob(format);
      JobSpec& spec = *job.mutable_spec();
      FieldConfig& field = *spec.add_fields();
      field.set_name(format == std::string("libfm") ? "features" : "0");
      if (format == std::string("criteo")) field.set_name("C1");
      field.set_column(format == std::string("libfm") ? "0" : field.name());
      field.set_kind(format == std::string("criteo") ? "categorical" : "multiValued");
      if (format == std::string("criteo")) {
        for (int i = 2; i <= 26; ++i) {
          FieldConfig& other = *spec.add_fields();
          other = field;
          other.set_name(absl::StrCat("C", i));
          other.set_column(other.name());
        }
      }
      GiveTable(table, spec);
      return job;
    };
    TrainingJob plain = with("name: 'features'");
    REQUIRE(ResolveJob(plain).ok());
    CHECK(Change("columns", plain).empty());
    CHECK(plain.spec().tables_size() == 0);
    CHECK(plain.spec().fields_size() == 0);
    for (const char* own :
         {"dim: 8", "optimizer { type: 'sgd' }", "linear { type: 'ftrl' }", "init_scale: 0.5",
          "pull_codec: 'bf16'", "life_cycle { removal { ttl_steps: 9 } }"}) {
      INFO(own);
      TrainingJob job = with(absl::StrCat("name: 'features' ", own));
      const absl::Status resolved = ResolveJob(job);
      INFO(resolved);
      REQUIRE(resolved.ok());
      const std::string table = job.spec().tables(0).SerializeAsString();
      CHECK(Change("columns", job).empty());
      CHECK(job.spec().fields_size() == 0);
      REQUIRE(job.spec().tables_size() == 1);
      CHECK(job.spec().tables(0).SerializeAsString() == table);
    }
    TrainingJob named = with("name: 'clicks'");
    if (format == std::string("libfm")) {  // without fields there is one table, whatever its name
      REQUIRE(ResolveJob(named).ok());
      CHECK(Change("columns", named).empty());
      CHECK(named.spec().tables(0).name() == "clicks");
      Change("fields", named);
      CHECK(named.spec().fields(0).table() == "clicks");
    } else {
      CHECK(Refusal("columns", named) ==
            "spec.tables[0].name: 'clicks' is another name than features, that of the table "
            "without spec.fields");
    }
  }
}

// Of csv a table's name is hashed into the keys of its fields.
TEST_CASE("keys that hash the name of a table have no form of columns", "[job]") {
  TrainingJob job = FieldsJob();
  job.mutable_spec()->mutable_fields(0)->set_name("user_id");
  job.mutable_spec()->mutable_fields(1)->set_name("item_id");
  job.mutable_spec()->mutable_fields(2)->set_default_value("");
  job.mutable_spec()->mutable_fields()->RemoveLast();
  CHECK(Refusal("columns", job) == "");
  GiveTable("name: 'features'", *job.mutable_spec());
  CHECK(Refusal("columns", job) ==
        "spec.fields[0].table: the keys of field 'user_id' hash the name of its table, 'features', "
        "and those of spec.data.columns their column's: its rows would be others");

  // Those of columns do not, whatever spec.tables says.
  TrainingJob columns = ColumnsJob("label: 'y' categorical: 'c' ignored: '*'");
  GiveTable("name: 'features'", *columns.mutable_spec());
  REQUIRE(ResolveJob(columns).ok());
  TrainingJob plain = columns;
  Change("fields", plain);
  CHECK(plain.spec().tables_size() == 0);
  CHECK(PlanFields(plain.spec()).fields[0].seed_name ==
        PlanFields(columns.spec()).fields[0].seed_name);
  columns.mutable_spec()->mutable_tables(0)->set_dim(8);
  CHECK(Refusal("fields", columns) ==
        "spec.tables[0].dim: is not as spec.model.embeddingDim, and beside spec.tables the keys of "
        "spec.fields hash the name of the table, those of spec.data.columns their column's; say it "
        "in spec.model.embeddingDim, and remove spec.tables");
}

TEST_CASE("fields of libffm have the names that they have without spec.fields", "[job]") {
  TrainingJob job = FormatJob("libffm");
  REQUIRE(ResolveJob(job).ok());
  CHECK(Refusal("fields", job) ==
        "spec.data.format: libffm says in its lines how many fields there are, and it is not known "
        "here; name those that a table needs");
  const std::string before = job.SerializeAsString();
  REQUIRE(ToFieldsForm(*job.mutable_spec(), 3).ok());
  REQUIRE(ResolveJob(job).ok());
  CHECK(job.spec().fields_size() == 3);
  CHECK(job.spec().fields(2).name() == "2");
  TrainingJob named = job;
  Change("columns", job);
  CHECK(job.SerializeAsString() == before);
  // Whatever its number is.
  named.mutable_spec()->mutable_fields(2)->set_name("item");
  named.mutable_spec()->mutable_fields(2)->set_column("70");
  CHECK(Refusal("columns", named) ==
        "spec.fields[2].name: 'item' is a name for 70 of the format, which spec.data cannot say");
}

}  // namespace
}  // namespace strata

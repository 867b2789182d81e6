#include <google/protobuf/text_format.h>

#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/job/fields/field_plan.h"
#include "proto/job/job_spec.h"
#include "proto/job/schema/schema.h"
#include "tests/proto/job/fields/fields_job.h"

namespace strata {
namespace {

// What is wrong with the job after a change; "OK": nothing.
std::string Problem(const std::function<void(JobSpec&)>& change) {
  TrainingJob job = FieldsJob();
  change(*job.mutable_spec());
  const absl::Status status = ResolveJob(job);
  return status.ok() ? "OK" : std::string(status.message());
}

// The same of the options of one field, as text.
std::string FieldProblem(const std::string& text) {
  return Problem([&](JobSpec& spec) {
    REQUIRE(google::protobuf::TextFormat::MergeFromString(text, spec.add_fields()));
  });
}

TEST_CASE("fields take their defaults", "[job]") {
  TrainingJob job = FieldsJob();
  REQUIRE(ResolveJob(job).ok());
  const JobSpec& spec = job.spec();
  CHECK(spec.data().columns().delimiter() == ",");
  CHECK(spec.data().columns().header());
  CHECK(spec.fields(0).table() == "features");
  CHECK(spec.fields(2).column() == "tags");
  CHECK(spec.fields(2).separator() == "|");
  CHECK(spec.fields(2).pooling() == "sum");
  CHECK(spec.fields(3).table().empty());
  CHECK_FALSE(spec.fields(0).has_hash_seed());
  TrainingJob again = job;
  REQUIRE(ResolveJob(again).ok());
  CHECK(again.SerializeAsString() == job.SerializeAsString());
}

TEST_CASE("a field that is wrong is named, with what to do", "[job]") {
  const std::string at = "spec.fields[4].";
  const struct {
    const char* field;
    std::string says;
  } cases[] = {
      {"kind: 'numeric'", "name: is missing; name the field"},
      {"name: 'a b' kind: 'numeric'", "name: 'a b' may hold letters, digits, '_' and '-' only"},
      {"name: 'user' kind: 'numeric'",
       "name: 'user' is the name of spec.fields[0] too; give it another"},
      {"name: 'f' kind: 'bag'",
       "kind: 'bag' is not one of: categorical, multiValued, sequence, numeric"},
      {"name: 'f' kind: 'numeric' pooling: 'sum'",
       "pooling: is for kind multiValued, and field 'f' is numeric; remove it"},
      {"name: 'f' kind: 'categorical' separator: ';'",
       "separator: is for kind multiValued and sequence, and field 'f' is categorical; remove it"},
      {"name: 'f' kind: 'multiValued' max_length: 3",
       "maxLength: is for kind sequence, and field 'f' is multiValued; remove it"},
      {"name: 'f' kind: 'categorical' transform { type: 'log' }",
       "transform: is for kind numeric, and field 'f' is categorical; remove it"},
      {"name: 'f' kind: 'numeric' vocabulary { file: 'v' }",
       "vocabulary: is for kind categorical and multiValued and sequence, and field 'f' is "
       "numeric; "
       "remove it"},
      {"name: 'f' kind: 'numeric' table: 'features'",
       "table: field 'f' is a number, and has no rows; remove it, or bucketise the field"},
      {"name: 'f' kind: 'numeric' hash_seed: 3",
       "hashSeed: field 'f' is a number, and nothing of it is hashed; remove it"},
      {"name: 'f' kind: 'categorical' table: 'user'",
       "table: 'user' of field 'f' is no table of the job; there are: features"},
      {"name: 'f' kind: 'multiValued' separator: ','",
       "separator: ',' is the delimiter of columns too; take another"},
      {"name: 'f' kind: 'multiValued' weight_separator: '|'",
       "weightSeparator: '|' is the separator of values too; take another"},
      {"name: 'f' kind: 'multiValued' separator: '::'",
       "separator: '::' must be one character, or \"\\t\""},
      {"name: 'f' kind: 'multiValued' pooling: 'max' weight_separator: ':'",
       "weightSeparator: weights mean nothing to max pooling, which field 'f' has; remove it, or "
       "take sum"},
      {"name: 'f' kind: 'sequence'",
       "maxLength: is missing; say how many values of sequence 'f' are kept, 1 to 4096"},
      {"name: 'f' kind: 'sequence' max_length: 5000",
       "maxLength: 5000 is outside the limits; give a number from 1 to 4096"},
      {"name: 'f' kind: 'sequence' max_length: 5 truncate: 'left'",
       "truncate: 'left' is not one of: oldest, newest, never"},
      {"name: 'f' kind: 'sequence' max_length: 5",
       "kind: field 'f' is a sequence, and model type deepfm reads none; take kind multiValued, "
       "which is pooled"},
      {"name: 'f' kind: 'numeric' default_value: 'x'",
       "defaultValue: 'x' is not a number, and field 'f' is numeric; write a number as 0.5 or -3"},
      {"name: 'f' kind: 'numeric' default_value: ' 5'",
       "defaultValue: ' 5' is not a number, and field 'f' is numeric; write a number as 0.5 or -3"},
      {"name: 'f' kind: 'numeric' default_value: '+-5'",
       "defaultValue: '+-5' is not a number, and field 'f' is numeric; write a number as 0.5 or "
       "-3"},
      {"name: 'f' kind: 'numeric' default_value: ''",
       "defaultValue: '' is not a number, and field 'f' is numeric; write a number as 0.5 or -3"},
      {"name: 'f' kind: 'numeric' default_value: '1e-400'",
       "defaultValue: '1e-400' is no finite number, and field 'f' is numeric; write a number as "
       "0.5 or -3"},
      {"name: 'f' kind: 'numeric' default_value: '1e39'",
       "defaultValue: '1e39' is out of float32's range, and field 'f' is numeric; write a number "
       "as 0.5 or -3"},
      {"name: 'f' kind: 'numeric' default_value: '3.4028235e38'",
       "defaultValue: '3.4028235e38' is out of float32's range, and field 'f' is numeric; write a "
       "number as 0.5 or -3"},
      {"name: 'f' kind: 'numeric' default_value: 'nan'",
       "defaultValue: 'nan' is no finite number, and field 'f' is numeric; write a number as 0.5 "
       "or -3"},
      {"name: 'f' kind: 'numeric' default_value: 'inf' transform { type: 'clip' max: 9 }",
       "defaultValue: 'inf' is no finite number, and field 'f' is numeric; write a number as 0.5 "
       "or -3"},
      {"name: 'f' kind: 'numeric' default_value: '9' transform { type: 'standardise' mean: 0 "
       "deviation: 1e-40 }",
       "defaultValue: '9' is out of float32's range behind the transform, and field 'f' is "
       "numeric; write a number as 0.5 or -3"},
      {"name: 'f' kind: 'multiValued' default_value: 'a|b'",
       "defaultValue: 'a|b' holds '|', the separator of field 'f', and a default is one value, of "
       "weight 1; give one value, or another separator"},
      {"name: 'f' kind: 'multiValued' weight_separator: ':' default_value: 'a:2'",
       "defaultValue: 'a:2' holds ':', the weightSeparator of field 'f', and a default is one "
       "value, of weight 1; give one value, or another weightSeparator"},
      {"name: 'f' kind: 'sequence' max_length: 5 separator: ' ' default_value: 'a b'",
       "defaultValue: 'a b' holds ' ', the separator of field 'f', and a default is one value, of "
       "weight 1; give one value, or another separator"},
      {"name: 'f' kind: 'categorical' vocabulary { }",
       "vocabulary.file: is missing; name the file with the values of field 'f'"},
      {"name: 'f' kind: 'categorical' vocabulary { file: 'v' out_of_vocabulary: 0 }",
       "vocabulary.outOfVocabulary: 0 is outside the limits; give a number from 1 to 1073741824"},
  };
  for (const auto& [field, says] : cases) {
    INFO(field);
    CHECK(FieldProblem(field) == at + says);
  }
  for (const char* field :
       {"column: 'user_id' kind: 'multiValued' weight_separator: ':'",
        "kind: 'multiValued' separator: ';' default_value: 'a|b'",
        "kind: 'multiValued' default_value: ''", "kind: 'categorical' default_value: 'a|b'",
        "kind: 'numeric' default_value: '+5'",
        "kind: 'numeric' default_value: '1e39' transform { type: 'log' }",
        "kind: 'numeric' default_value: '-1e39' transform { type: 'clip' min: 0 }"}) {
    CHECK(FieldProblem(absl::StrCat("name: 'f' ", field)) == "OK");
  }
}

// An older scheduler accepted the first four.
TEST_CASE("a job that trains goes on whatever number a default is", "[job]") {
  for (const char* value : {" 5", "1e-400", "1e39", "3.4028235e38", "x"}) {
    INFO(value);
    TrainingJob job = FieldsJob();
    FieldConfig& field = *job.mutable_spec()->add_fields();
    field.set_name("f");
    field.set_kind("numeric");
    field.set_default_value(value);
    TrainingJob accepted = job;
    CHECK(absl::IsInvalidArgument(ResolveJob(job)));
    const absl::Status goes_on = ResolveAccepted(accepted);
    INFO(goes_on);
    REQUIRE(goes_on.ok());
    CHECK(accepted.spec().fields(4).default_value() == value);
    CHECK(accepted.spec().fields(4).column() == "f");
    // All else is checked.
    accepted.mutable_spec()->mutable_fields(4)->set_kind("number");
    CHECK(absl::IsInvalidArgument(ResolveAccepted(accepted)));
  }
}

TEST_CASE("a transform that is wrong is named, with what to do", "[job]") {
  const std::string at = "spec.fields[4].transform.";
  const struct {
    const char* transform;
    std::string says;
  } cases[] = {
      {"", "type: is missing; give one of: log, bucketise, standardise, clip"},
      {"type: 'log' mean: 3",
       "mean: is for type standardise, and the transform of field 'f' is log; remove it"},
      {"type: 'bucketise'", "bounds: is missing; give the bounds of the buckets, ascending"},
      {"type: 'bucketise' bounds: [1, 3, 3]",
       "bounds[2]: 3 is not above the bound before it, 3; give them strictly ascending"},
      {"type: 'bucketise' bounds: [1, nan]",
       "bounds[1]: nan is not a finite number; write one as 0.5 or 1e-3"},
      {"type: 'standardise' deviation: 1", "mean: is missing; give the mean of the values"},
      {"type: 'standardise' mean: 1",
       "deviation: is missing; give the standard deviation of the values"},
      {"type: 'standardise' mean: 1 deviation: 0", "deviation: 0 must be above 0"},
      {"type: 'clip'", "min: is missing, and so is max; give one"},
      {"type: 'clip' min: 2 max: 1", "min: 2 is above max, 1"},
  };
  for (const auto& [transform, says] : cases) {
    INFO(transform);
    CHECK(FieldProblem(std::string("name: 'f' kind: 'numeric' transform {") + transform + "}") ==
          at + says);
  }
  for (const char* good : {"type: 'log'", "type: 'bucketise' bounds: [-1, 0, 7.5]",
                           "type: 'standardise' mean: -3 deviation: 0.5", "type: 'clip' max: 3"}) {
    CHECK(FieldProblem(std::string("name: 'f' kind: 'numeric' transform {") + good + "}") == "OK");
  }
}

TEST_CASE("columns are said in one place", "[job]") {
  CHECK(Problem(
            [](JobSpec& s) { s.mutable_data()->mutable_columns()->add_categorical("user_id"); }) ==
        "spec.data.columns.categorical: spec.fields says what the columns are; remove one of the "
        "two");
  CHECK(Problem([](JobSpec& s) { s.mutable_data()->mutable_columns()->set_delimiter(";"); }) ==
        "OK");
  CHECK(Problem([](JobSpec& s) { s.clear_labels(); }) ==
        "spec.labels: is missing; csv needs the label's column, as in {name: click, column: "
        "clicked}");
  CHECK(Problem([](JobSpec& s) {
          s.clear_labels();
          s.mutable_data()->mutable_columns()->set_label("clicked");
        }) == "OK");
  CHECK(Problem([](JobSpec& s) { s.mutable_data()->mutable_columns()->set_header(false); }) ==
        "spec.fields[0].column: 'user_id' is not a position; without a header columns are numbered "
        "from 0");
  CHECK(Problem([](JobSpec& s) { s.mutable_labels(0)->set_column("tags"); }) ==
        "spec.labels[0].column: column 'tags' is spec.fields[2] too; a column has one use: remove "
        "one of them");
}

TEST_CASE("fields name tables of the job", "[job]") {
  const auto tables = [](JobSpec& s) {
    s.add_tables()->set_name("user");
    s.add_tables()->set_name("item");
    for (FieldConfig& f : *s.mutable_fields()) {
      if (f.kind() != "numeric") f.set_table(f.name() == "item" ? "item" : "user");
    }
  };
  CHECK(Problem([&](JobSpec& s) {
          tables(s);
          s.mutable_fields(1)->set_table("itme");
        }) ==
        "spec.fields[1].table: 'itme' of field 'item' is no table of the job; there are: user, "
        "item");
  CHECK(Problem([&](JobSpec& s) {
          tables(s);
          s.mutable_fields(1)->clear_table();
        }) ==
        "spec.fields[1].table: is missing; name a table of spec.tables for field 'item': user, "
        "item");
  const auto vocabularies = [&](JobSpec& s) {
    tables(s);
    s.mutable_fields(0)->mutable_vocabulary()->set_file("a");
    s.mutable_fields(2)->mutable_vocabulary()->set_file("b");
  };
  CHECK(Problem(vocabularies) ==
        "spec.fields[2].vocabulary.file: field 'tags' and field 'user' share table user and have "
        "other vocabularies; give one of them a hashSeed of its own, or another table");
  const auto buckets = [&](JobSpec& s) {
    vocabularies(s);
    s.mutable_fields(2)->mutable_vocabulary()->set_file("a");
    s.mutable_fields(2)->mutable_vocabulary()->set_out_of_vocabulary(7);
  };
  CHECK(Problem(buckets) ==
        "spec.fields[2].vocabulary.outOfVocabulary: field 'tags' and field 'user' share table user "
        "and have other vocabularies; give one of them a hashSeed of its own, or another table");
}

// Each field made a list of all tables.
TEST_CASE("as many fields and tables as there may be are one job's", "[job]") {
  const std::string rest(50, 't');
  CHECK(Problem([&](JobSpec& spec) {
          spec.clear_fields();
          for (int t = 0; t < 1024; ++t) spec.add_tables()->set_name(absl::StrCat(rest, t));
          for (int i = 0; i < 65536; ++i) {
            FieldConfig& field = *spec.add_fields();
            field.set_name(absl::StrCat("f", i));
            field.set_kind("categorical");
            field.set_table(spec.tables(1023 - i % 1024).name());
          }
        }) == "OK");
}

TEST_CASE("fields of one column share its rows, and so a vocabulary", "[job]") {
  const auto same_column = [](JobSpec& s) {
    for (const int i : {0, 1}) {
      s.mutable_fields(i)->set_column("item_id");
      s.mutable_fields(i)->mutable_vocabulary()->set_file("a");
    }
  };
  CHECK(Problem(same_column) == "OK");
  CHECK(Problem([&](JobSpec& s) {
          same_column(s);
          s.mutable_fields(1)->mutable_vocabulary()->set_file("b");
        }) ==
        "spec.fields[1].vocabulary.file: field 'item' and field 'user' share the rows of column "
        "item_id and have other vocabularies; give one of them a hashSeed of its own");
  CHECK(Problem([&](JobSpec& s) {
          same_column(s);
          s.mutable_fields(1)->mutable_vocabulary()->set_file("b");
          s.mutable_fields(1)->set_hash_seed(3);
        }) == "OK");
}

TEST_CASE("a plan numbers features and numbers apart", "[job]") {
  TrainingJob job = FieldsJob();
  FieldConfig* bucket = job.mutable_spec()->add_fields();
  REQUIRE(google::protobuf::TextFormat::MergeFromString(
      "name: 'b' column: 'price' kind: 'numeric' transform { type: 'bucketise' bounds: [1] }",
      bucket));
  job.mutable_spec()->mutable_fields(2)->set_pooling("max");
  REQUIRE(ResolveJob(job).ok());
  const FieldsPlan plan = PlanFields(job.spec());
  CHECK(plan.features == 4);
  CHECK(plan.numbers == 1);
  CHECK(plan.ByNumber()[3]->name == "b");
  CHECK(plan.ByNumber()[3]->table == "features");
  CHECK(plan.fields[3].is_number());
  CHECK(plan.MaxPooled() == std::vector<bool>{false, false, true, false});
  CHECK(plan.fields[0].seed_name == "user_id");
  job.mutable_spec()->mutable_fields(2)->set_pooling("mean");
  CHECK(PlanFields(job.spec()).MaxPooled().empty());
}

TEST_CASE("fields of a table share its seed", "[job]") {
  TrainingJob job = FieldsJob();
  for (const char* table : {"user", "item"}) job.mutable_spec()->add_tables()->set_name(table);
  for (FieldConfig& f : *job.mutable_spec()->mutable_fields()) {
    if (f.kind() != "numeric") f.set_table(f.name() == "item" ? "item" : "user");
  }
  const FieldsPlan plan = PlanFields(job.spec());
  CHECK(plan.fields[0].seed_name == "user");
  CHECK(plan.fields[1].seed_name == "item");
  CHECK(plan.fields[2].seed_name == "user");
}

// As the parser of such lines hashes them (worker/data/formats/csv_parser.cc), and as schemas say.
TEST_CASE("columns hash their own names, whatever spec.tables says of their rows", "[job]") {
  TrainingJob job = FieldsJob();
  JobSpec& spec = *job.mutable_spec();
  spec.clear_fields();
  spec.mutable_data()->mutable_columns()->add_categorical("user_id");
  spec.mutable_data()->mutable_columns()->add_ignored("*");
  TableConfig& table = *spec.add_tables();
  table.set_name("features");
  table.set_dim(8);
  REQUIRE(ResolveJob(job).ok());
  CHECK(PlanFields(spec).fields[0].table == "features");
  CHECK(PlanFields(spec).fields[0].seed_name == "user_id");
  CHECK(SchemaFields(spec, 0)[0].keys() == "column");
}

TEST_CASE("formats other than csv have fields of their own, which a job names", "[job]") {
  TrainingJob job = FieldsJob();
  JobSpec& spec = *job.mutable_spec();
  spec.clear_fields();
  spec.clear_labels();
  spec.mutable_data()->set_format("criteo");
  const auto problem = [&](const char* field) {
    TrainingJob changed = job;
    REQUIRE(
        google::protobuf::TextFormat::MergeFromString(field, changed.mutable_spec()->add_fields()));
    const absl::Status status = ResolveJob(changed);
    return status.ok() ? "OK" : std::string(status.message());
  };
  CHECK(problem("name: 'site' column: 'C1' kind: 'categorical'") == "OK");
  CHECK(problem("name: 'site' column: 'C27' kind: 'categorical'") ==
        "spec.fields[0].column: 'C27' of field 'site' is no column of format criteo; there are C1 "
        "to I13");
  CHECK(problem("name: 'site' column: 'C1' kind: 'multiValued'") ==
        "spec.fields[0].kind: field 'site' is categorical in format criteo, not multiValued");
  CHECK(
      problem("name: 'site' column: 'C1' kind: 'categorical' hash_seed: 4") ==
      "spec.fields[0].kind: of field 'site' format criteo says all but name and table; remove the "
      "other options");
  CHECK(problem("name: 'count' column: 'I1' kind: 'numeric'") == "OK");
  REQUIRE(ResolveJob(job).ok());
  FieldConfig* named = spec.add_fields();
  REQUIRE(google::protobuf::TextFormat::MergeFromString(
      "name: 'site' column: 'C2' kind: 'categorical'", named));
  const FieldsPlan plan = PlanFields(spec);
  CHECK(plan.features == 26);
  CHECK(plan.numbers == 13);
  CHECK(plan.ByNumber()[0]->name == "C1");
  CHECK(plan.ByNumber()[1]->name == "site");
  spec.clear_fields();
  spec.mutable_data()->set_integer_features("bucket");
  CHECK(PlanFields(spec).features == 39);
  spec.mutable_data()->set_format("libffm");
  CHECK(PlanFields(spec, 7).features == 7);
}

// Each is looked at alone, so that a job does not pay for all that lines may have.
TEST_CASE("fields of libffm are named by their numbers", "[job]") {
  const auto problem = [](const std::vector<std::string>& columns) {
    return Problem([&](JobSpec& spec) {
      spec.mutable_data()->set_format("libffm");
      spec.clear_fields();
      spec.clear_labels();
      for (const std::string& column : columns) {
        FieldConfig& field = *spec.add_fields();
        field.set_name("f" + std::to_string(spec.fields_size()));
        field.set_column(column);
        field.set_kind("multiValued");
      }
    });
  };
  CHECK(problem({"65535", "0", "17"}) == "OK");
  for (const char* none : {"65536", "4294967296", "07", "+7", " 7", "-1", "x"}) {
    INFO(none);
    CHECK(problem({"3", none}) == std::string("spec.fields[1].column: '") + none +
                                      "' of field 'f2' is no column of format libffm; there are 0 "
                                      "to 65535");
  }
  CHECK(problem({"7", "9", "7"}) ==
        "spec.fields[2].column: '7' is that of field 'f1' too; name each column once");
}

}  // namespace
}  // namespace strata

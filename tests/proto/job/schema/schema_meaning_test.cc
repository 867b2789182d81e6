#include "proto/job/schema/schema_meaning.h"

#include <google/protobuf/text_format.h>

#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/job/job_spec.h"
#include "proto/job/schema/schema.h"
#include "proto/job/schema/schema_mapping.h"
#include "proto/job/schema/schema_start.h"
#include "proto/job/schema/schema_text.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/job.pb.h"

namespace strata {
namespace {

// A job with the fields that `text` has, defaults resolved.
TrainingJob Job(const std::string& text) {
  TrainingJob job;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(absl::StrCat(R"(
        api_version: "strata/v1" kind: "TrainingJob" metadata { name: "j" }
        spec {
          data { format: "csv" train: "t.csv" columns { label: "y" } }
          model { type: "din" embedding_dim: 4 hidden: 8 })",
                                                                     text, " }"),
                                                        &job));
  const absl::Status resolved = ResolveJob(job);
  INFO(resolved);
  REQUIRE(resolved.ok());
  return job;
}

TrainingJob JobOfField(const std::string& text) {
  return Job(absl::StrCat(
      "tables { name: 't' dim: 4 } fields { name: 'user' kind: 'categorical' table: 't' } "
      "fields { name: 'f' table: 't' ",
      text, " }"));
}

Schema SchemaOf(const TrainingJob& job) {
  const auto schema = DeclaredSchema(job.spec());
  INFO(schema.status());
  REQUIRE(schema.ok());
  return *schema;
}

std::string ResumeProblem(const TrainingJob& saved, const TrainingJob& now) {
  return std::string(CheckResume(MapSchemas(SchemaOf(saved), SchemaOf(now))).message());
}

std::string InitProblem(const TrainingJob& saved, const TrainingJob& now) {
  const Schema from = SchemaOf(saved), to = SchemaOf(now);
  return std::string(CheckInitFrom(MapSchemas(from, to), from, to, InitFromSpec()).message());
}

TEST_CASE("what a field is without a value is part of what it means", "[schema_meaning]") {
  const std::string kind = GENERATE("kind: 'multiValued'", "kind: 'sequence' max_length: 3");
  INFO(kind);
  const TrainingJob none = JobOfField(kind);
  const TrainingJob empty = JobOfField(absl::StrCat(kind, " default_value: ''"));
  const TrainingJob some = JobOfField(absl::StrCat(kind, " default_value: 'x'"));
  CHECK(ResumeProblem(empty, empty) == "");
  CHECK(ResumeProblem(none, none) == "");
  CHECK(ResumeProblem(none, empty) == "field f: defaultValue was none, is ''");
  CHECK(ResumeProblem(empty, none) == "field f: defaultValue was '', is none");
  CHECK(ResumeProblem(empty, some) == "field f: defaultValue was '', is 'x'");
  CHECK(absl::StartsWith(InitProblem(none, empty), "field f: defaultValue was none, is ''; "));
  CHECK(absl::StartsWith(InitProblem(empty, none), "field f: defaultValue was '', is none; "));
  CHECK(absl::StrContains(SchemaText(SchemaOf(empty)), "  default ''\n"));
  CHECK_FALSE(absl::StrContains(SchemaText(SchemaOf(none)), "  default "));
}

TEST_CASE("a category without a value is that of the empty one", "[schema_meaning]") {
  const TrainingJob none = JobOfField("kind: 'categorical'");
  const TrainingJob empty = JobOfField("kind: 'categorical' default_value: ''");
  const TrainingJob some = JobOfField("kind: 'categorical' default_value: 'x'");
  CHECK(ResumeProblem(none, empty) == "");
  CHECK(ResumeProblem(empty, none) == "");
  CHECK(InitProblem(none, empty) == "");
  CHECK(ResumeProblem(none, some) == "field f: defaultValue was none, is 'x'");
  CHECK(ResumeProblem(some, empty) == "field f: defaultValue was 'x', is none");
}

TEST_CASE("the default of a number is compared as one", "[schema_meaning]") {
  const auto number = [](const std::string& more) {
    return Job(
        absl::StrCat("fields { name: 'user' kind: 'categorical' } "
                     "fields { name: 'f' kind: 'numeric' transform { type: 'log' } ",
                     more, " }"));
  };
  const TrainingJob none = number(""), zero = number("default_value: '0'");
  CHECK(ResumeProblem(number("default_value: '40'"), number("default_value: '4e1'")) == "");
  CHECK(ResumeProblem(number("default_value: '40'"), number("default_value: '40.5'")) ==
        "field f: defaultValue was '40', is '40.5'");
  CHECK(ResumeProblem(none, zero) == "field f: defaultValue was none, is '0'");
  CHECK(ResumeProblem(zero, none) == "field f: defaultValue was '0', is none");
}

TEST_CASE("columns of several values are fields with a category for none", "[schema_meaning]") {
  const auto columns = [](const std::string& more) {
    return Job(absl::StrCat(
        "fields { name: 'user' kind: 'categorical' } fields { name: 'tags' kind: 'multiValued' ",
        more, " }"));
  };
  TrainingJob brief = columns("");
  brief.mutable_spec()->clear_fields();
  ColumnsSpec& list = *brief.mutable_spec()->mutable_data()->mutable_columns();
  list.add_categorical("user");
  list.add_multi_valued()->set_column("tags");
  REQUIRE(ResolveJob(brief).ok());
  CHECK(ResumeProblem(brief, columns("default_value: ''")) == "");
  CHECK(ResumeProblem(columns("default_value: ''"), brief) == "");
  CHECK(ResumeProblem(brief, columns("")) == "field tags: defaultValue was '', is none");
  CHECK(ResumeProblem(columns(""), brief) == "field tags: defaultValue was none, is ''");
}

// Versions before wrote neither.
TEST_CASE("a manifest's job says which default its schema leaves out", "[schema_meaning]") {
  const bool has = GENERATE(false, true);
  Manifest manifest;
  *manifest.mutable_job() =
      JobOfField(absl::StrCat("kind: 'multiValued'", has ? " default_value: ''" : ""));
  const Schema made = SchemaOf(manifest.job());
  *manifest.mutable_schema() = made;
  for (SchemaField& f : *manifest.mutable_schema()->mutable_fields()) f.clear_default_value();
  CHECK(SavedSchema(manifest).SerializeAsString() == made.SerializeAsString());
  CHECK(CheckSaved(SavedSchema(manifest), made).message() == "");
  // Where the manifest is gone, the job that took it.
  const auto stored = [&](Schema kept, const std::map<std::string, std::string>& rename) {
    return StoredSchema(kept, manifest.job().spec(), rename).SerializeAsString();
  };
  CHECK(stored(manifest.schema(), {}) == made.SerializeAsString());
  Schema other = manifest.schema();
  other.mutable_fields(1)->set_name("g");
  CHECK(stored(other, {}) == other.SerializeAsString());
  const std::string left = stored(other, {{"g", ""}});
  CHECK(left == other.SerializeAsString());
  const std::string renamed = stored(other, {{"g", "f"}});
  if (has) other.mutable_fields(1)->set_default_value("");
  CHECK(renamed == other.SerializeAsString());
}

}  // namespace
}  // namespace strata

#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "tools/cli/describe/explain_command.h"
#include "tools/cli/describe/job_schema.h"

namespace strata {
namespace {

std::string Problem(const std::string& path) {
  const auto field = FindField(path);
  if (field.ok()) return "OK";
  CHECK(absl::IsNotFound(field.status()));
  return std::string(field.status().message());
}

TEST_CASE("a field tells its type, comment and default", "[explain]") {
  const auto found = FindField("spec.training.batchSize");
  REQUIRE(found.ok());
  const JobFileField& field = **found;
  CHECK(field.name == "batchSize");
  CHECK(field.path == "spec.training.batchSize");
  CHECK(field.type == "integer");
  CHECK(field.text == "Examples of a lane's batch. Default 512.");
  CHECK(field.default_text == "512");
  CHECK_FALSE(field.required);
  CHECK(FieldText(field, Depth::kOneLevel) ==
        "spec.training.batchSize  <integer>\n    Examples of a lane's batch. Default 512.\n");
}

TEST_CASE("types and defaults are told as a job file writes them", "[explain]") {
  const auto type = [](const char* path) { return (*FindField(path))->type; };
  CHECK(type("metadata") == "object");
  CHECK(type("metadata.name") == "text");
  CHECK(type("spec.data.train") == "list of texts");
  CHECK(type("spec.data.columns.multiValued") == "list of objects");
  CHECK(type("spec.model.hidden") == "list of integers");
  CHECK(type("spec.model.initScale") == "number");
  CHECK(type("spec.data.shuffle.enabled") == "true or false");
  const auto standard = [](const char* path) { return (*FindField(path))->default_text; };
  CHECK(standard("spec.data.maxBadLines") == "0");
  CHECK(standard("spec.data.columns.delimiter") == "\",\"");
  CHECK(standard("spec.model.hidden") == "[400, 400, 400]; dlrm [256, 128]; din [200, 80]");
  CHECK(standard("spec.model.initScale") == "0.01");
  CHECK(standard("spec.optimizer.sparse.epsilon") ==
        "adagrad 1e-10, rowwise_adagrad 1e-8, adam 1e-8");
  CHECK(standard("spec.storage.logBytesPerServer") == "\"1GiB\"");
  CHECK(standard("metadata.name").empty());
  CHECK((*FindField("metadata.name"))->required);
}

TEST_CASE("the top and objects list their fields; recursion goes to the leaves", "[explain]") {
  for (const char* top : {"", "."}) {
    const auto field = FindField(top);
    REQUIRE(field.ok());
    const std::string text = FieldText(**field, Depth::kOneLevel);
    CHECK(absl::StrContains(text, "apiVersion  <text>"));
    CHECK(absl::StrContains(text, "spec  <object>"));
    CHECK_FALSE(absl::StrContains(text, "batchSize"));
    CHECK(absl::StrContains(FieldText(**field, Depth::kRecursive), "batchSize  <integer>"));
  }
  const std::string sparse = FieldText(**FindField("spec.optimizer.sparse"), Depth::kOneLevel);
  CHECK(absl::StrContains(sparse, "For rows of features."));
  CHECK(absl::StrContains(sparse, "\n  learningRate  <number>\n      Default: sgd 0.01"));
  const std::string all = FieldText(JobSchema(), Depth::kRecursive);
  for (absl::string_view line : absl::StrSplit(all, '\n')) CHECK(line.size() <= 100);
}

TEST_CASE("JSON of a field parses and holds the same", "[explain]") {
  const JobFileField& training = **FindField("spec.training");
  const auto json = nlohmann::json::parse(FieldJson(training, Depth::kOneLevel));
  CHECK(json["path"] == "spec.training");
  CHECK(json["type"] == "object");
  REQUIRE(json["fields"].size() == training.fields.size());
  CHECK(json["fields"][2]["name"] == "batchSize");
  CHECK(json["fields"][2]["default"] == "512");
  const auto top = nlohmann::json::parse(FieldJson(JobSchema(), Depth::kOneLevel));
  CHECK_FALSE(top["fields"][3].contains("fields"));
  const auto whole = nlohmann::json::parse(FieldJson(JobSchema(), Depth::kRecursive));
  CHECK(whole["fields"][3]["fields"][0]["fields"][0]["path"] == "spec.data.format");
}

TEST_CASE("an unknown field is answered with what was probably meant", "[explain]") {
  CHECK(Problem("spec.training.batchsize") ==
        "'spec.training.batchsize': spec.training has no field 'batchsize'; did you mean "
        "'spec.training.batchSize'?");
  CHECK(absl::StrContains(Problem("spec.training.batch_size"), "'spec.training.batchSize'?"));
  CHECK(absl::StrContains(Problem("spec.trainning"), "did you mean 'spec.training'?"));
  CHECK(absl::StrContains(Problem("training.batchSize"), "did you mean 'spec.training.batchSize'"));
  CHECK(absl::StrContains(Problem("batchSize"), "did you mean 'spec.training.batchSize'?"));
  CHECK(absl::StrContains(Problem("spec.optimizer.learningRate"),
                          "one of: spec.optimizer.sparse.learningRate, "));
  CHECK(absl::StrContains(Problem("spec.training.zzzzzzzz"), "it has: mode, lanes, "));
  CHECK(absl::StrContains(Problem("spec.training.lanes.x"), "is integer and has no fields"));
  CHECK(absl::StrContains(Problem("spec..data"), "has no field ''"));
  CHECK(absl::StrContains(Problem("spec."), "has no field ''"));
}

TEST_CASE("an element of a list is explained as the list", "[explain]") {
  CHECK((*FindField("spec.model.hidden[1]"))->path == "spec.model.hidden");
  CHECK((*FindField("spec.data.columns.multiValued[0].column"))->name == "column");
}

TEST_CASE("every path is listed once and found", "[explain]") {
  std::vector<std::string> paths = AllPaths();
  CHECK(paths.size() > 80);
  for (const std::string& path : paths) CHECK(FindField(path).ok());
  std::sort(paths.begin(), paths.end());
  CHECK(std::adjacent_find(paths.begin(), paths.end()) == paths.end());
}

}  // namespace
}  // namespace strata

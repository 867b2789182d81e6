#include "tools/cli/job/file.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/strata/job.pb.h"
#include "tests/temp_folder.h"
#include "tests/tools/cli/job/example_job.h"

namespace strata {
namespace {

TEST_CASE("a job file is read, with paths made absolute and defaults filled", "[job_file]") {
  absl::StatusOr<TrainingJob> job = Parse(kJob);
  REQUIRE(job.ok());
  CHECK(job->metadata().name() == "clicks");
  REQUIRE(job->spec().data().train().size() == 2);
  CHECK(job->spec().data().train(0) == "/jobs/train.tsv");
  CHECK(job->spec().data().train(1) == "/more/day1.tsv");
  CHECK(job->spec().data().eval(0) == "/data/test.tsv");
  REQUIRE(job->spec().model().hidden().size() == 2);
  CHECK(job->spec().model().hidden(1) == 32);
  CHECK(job->spec().training().lanes() == 4);
  CHECK(job->spec().training().epochs() == 1);
  CHECK(job->spec().storage().directory().empty());
}

TEST_CASE("every path that says where data lie is relative to the job file", "[job_file]") {
  absl::StatusOr<TrainingJob> job =
      Parse(kJob, {"spec.model.initFrom=old/ckpt", "spec.storage.directory=state",
                   "spec.checkpoint.directory=./ckpt", "spec.output.predictions=out/p.csv",
                   "spec.output.metrics=/tmp/m.jsonl", "spec.output.removed=gone",
                   "spec.lifeCycle.removal.ttlSteps=9", "spec.lifeCycle.removal.everySteps=3"});
  REQUIRE(job.ok());
  CHECK(job->spec().model().init_from().checkpoint() == "/jobs/old/ckpt");
  CHECK(job->spec().storage().directory() == "/jobs/state");
  CHECK(job->spec().checkpoint().directory() == "/jobs/ckpt");
  CHECK(job->spec().output().predictions() == "/jobs/out/p.csv");
  CHECK(job->spec().output().metrics() == "/tmp/m.jsonl");
  CHECK(job->spec().output().removed() == "/jobs/gone");
}

// Fields that share rows have one vocabulary, however its file is called.
TEST_CASE("a vocabulary is one file by whatever path it is named", "[job_file]") {
  const absl::StatusOr<TrainingJob> job = Parse(
      "apiVersion: strata/v1\n"
      "kind: TrainingJob\n"
      "metadata: {name: j}\n"
      "spec:\n"
      "  data: {format: csv, train: [t.csv], columns: {label: y}}\n"
      "  model: {type: lr}\n"
      "  fields:\n"
      "    - {name: a, column: c, kind: categorical, vocabulary: {file: items.txt}}\n"
      "    - {name: b, column: c, kind: categorical, vocabulary: {file: ./items.txt}}\n"
      "    - {name: d, column: c, kind: categorical, vocabulary: {file: old/..//items.txt}}\n"
      "    - {name: e, column: c, kind: categorical, vocabulary: {file: /jobs/items.txt}}\n");
  INFO(job.status());
  REQUIRE(job.ok());
  for (const FieldConfig& field : job->spec().fields()) {
    CHECK(field.vocabulary().file() == "/jobs/items.txt");
  }
}

TEST_CASE("a path may begin with the user's home", "[job_file]") {
  const std::string home = std::getenv("HOME") == nullptr ? "" : std::getenv("HOME");
  setenv("HOME", "/users/ada", 1);
  const absl::StatusOr<TrainingJob> job =
      Parse(kJob, {"spec.data.train=[~/day0.tsv, ~other/x, a~/b]", "spec.storage.directory='~'",
                   "spec.checkpoint.directory=~/ckpt"});
  setenv("HOME", home.c_str(), 1);
  INFO(job.status());
  REQUIRE(job.ok());
  CHECK(job->spec().data().train(0) == "/users/ada/day0.tsv");
  CHECK(job->spec().data().train(1) == "/jobs/~other/x");
  CHECK(job->spec().data().train(2) == "/jobs/a~/b");
  CHECK(job->spec().storage().directory() == "/users/ada");
  CHECK(job->spec().checkpoint().directory() == "/users/ada/ckpt");
}

TEST_CASE("JSON is read, indented by tabs too", "[job_file]") {
  const std::string json =
      "{\n\t\"apiVersion\": \"strata/v1\",\n\t\"kind\": \"TrainingJob\",\n"
      "\t\"metadata\": {\"name\": \"j\"},\n\t\"spec\": {\n"
      "\t\t\"data\": {\"format\": \"csv\", \"train\": [\"a.csv\"],\n"
      "\t\t\t\"columns\": {\"label\": \"y\", \"categorical\": [\"c\"], \"delimiter\": \"\\t\"},\n"
      "\t\t\t\"shuffle\": {\"enabled\": false}},\n\t\t\"model\": {\"type\": \"lr\"},\n"
      "\t\t\"optimizer\": {\"sparse\": {\"learningRate\": 1e-1}}}}\n";
  absl::StatusOr<TrainingJob> job = Parse(json);
  REQUIRE(job.ok());
  CHECK(job->spec().data().columns().delimiter() == "\t");
  CHECK_FALSE(job->spec().data().shuffle().enabled());
  CHECK(job->spec().optimizer().sparse().learning_rate() == 0.1f);
  CHECK(Parse("{\n\t\"kind\": 1,\n\t\"knd\": 2}").status().message() ==
        "job.yaml:3:2: unknown field 'knd'; did you mean 'kind'?");
}

TEST_CASE("every example is a job", "[job_file]") {
  size_t examples = 0;
  for (const auto& entry : std::filesystem::directory_iterator("tools/examples")) {
    INFO(entry.path());
    if (entry.path().extension() != ".yaml" && entry.path().extension() != ".textproto") continue;
    ++examples;
    const auto job = LoadJobFile(entry.path().string(), {});
    INFO(job.status().message());
    CHECK(job.ok());
  }
  CHECK(examples >= 9);
}

TEST_CASE("files that are no job are refused", "[job_file]") {
  CHECK(Parse("").status().message() == "job.yaml: is empty");
  CHECK(Parse("# nothing\n").status().message() == "job.yaml: is empty");
  CHECK(Parse("[1, 2]").status().message() ==
        "job.yaml:1:1: expects a mapping of: apiVersion, kind, metadata, spec; found a list");
  CHECK(Parse("hello").status().message() ==
        "job.yaml:1:1: expects a mapping of: apiVersion, kind, metadata, spec; found 'hello'");
  // A data file named by mistake: not the whole of it.
  std::string data;
  for (int i = 0; i < 1000; ++i) data += "1 101:1 1102:1 2017:1\n";
  CHECK(Parse(data).status().message() ==
        "job.yaml:1:1: expects a mapping of: apiVersion, kind, metadata, spec; found "
        "'1 101:1 1102:1 2017:1 1 101:1 1102:1 201...'");
  CHECK(Parse("aaaaaaaaaabbbbbbbbbbccccccccccddddddddd\xC3\xA9").status().message() ==
        "job.yaml:1:1: expects a mapping of: apiVersion, kind, metadata, spec; found "
        "'aaaaaaaaaabbbbbbbbbbccccccccccddddddddd...'");
  CHECK(Parse(absl::StrCat(std::string(1000, 'k'), ": 1"))
            .status()
            .message()
            .find("unknown field '" + std::string(40, 'k') + "...'") != std::string::npos);
  CHECK(Parse(absl::StrCat(kJob, "---\n", kJob)).status().message() ==
        "job.yaml: holds 2 documents; a job file holds one");
  CHECK(Parse(std::string("a\0b", 3)).status().message() ==
        "job.yaml: holds a zero byte; is it text?");
  CHECK(Parse(std::string(100000, '[')).status().code() == absl::StatusCode::kInvalidArgument);
  CHECK(Parse("? [a]\n: 1\n").status().message() ==
        "job.yaml:1:3: expects a field's name; found a list");
}

TEST_CASE("overrides change values", "[job_file]") {
  absl::StatusOr<TrainingJob> job =
      Parse(kJob, {"spec.training.batchSize=4096", "spec.model.hidden=[8]", "spec.data.train=x.tsv",
                   "metadata.name=a.b", "spec.data.eval=", "spec.data.shuffle.enabled=false",
                   "spec.training.batchSize=4097", "spec.optimizer={dense: {type: sgd}}"});
  INFO(job.status().message());
  REQUIRE(job.ok());
  CHECK(job->spec().training().batch_size() == 4097);
  REQUIRE(job->spec().model().hidden().size() == 1);
  CHECK(job->spec().model().hidden(0) == 8);
  REQUIRE(job->spec().data().train().size() == 1);
  CHECK(job->spec().data().train(0) == "/jobs/x.tsv");
  CHECK(job->spec().data().eval().empty());
  CHECK_FALSE(job->spec().data().shuffle().enabled());
  CHECK(job->metadata().name() == "a.b");
  CHECK(job->spec().optimizer().dense().type() == "sgd");
}

TEST_CASE("wrong overrides are told", "[job_file]") {
  CHECK(SetProblem("batchSize") ==
        "--set batchSize: expects path=value, as in --set spec.training.batchSize=4096");
  CHECK(SetProblem("spec.training.batchsize=1") ==
        "--set spec.training.batchsize=1: spec.training: unknown field 'batchsize'; did you mean "
        "'batchSize'?");
  CHECK(SetProblem("batchSize=1") ==
        "--set batchSize=1: unknown field 'batchSize'; did you mean 'spec.training.batchSize'?");
  CHECK(SetProblem("spec.training.batchSize=big") ==
        "--set spec.training.batchSize=big: spec.training.batchSize: 'big' is not a whole number "
        "(0, 1, 2, ...)");
  CHECK(SetProblem("spec.training.batchSize=0") ==
        "--set spec.training.batchSize=0: spec.training.batchSize: 0 is outside the limits; give a "
        "number from 1 to 1048576");
  CHECK(SetProblem("spec.training.batchSize.x=0") ==
        "--set spec.training.batchSize.x=0: spec.training.batchSize has no fields");
  CHECK(SetProblem("spec.model.hidden=[1,") ==
        "--set spec.model.hidden=[1,: end of sequence flow not found");
  CHECK(SetProblem("spec.training=4")
            .find("--set spec.training=4: spec.training: expects a mapping of: mode, lanes, "
                  "batchSize, epochs, ") == 0);
}

TEST_CASE("files are read from disk", "[job_file]") {
  const TempFolder scratch;
  const std::string& folder = scratch.path();
  const std::string path = folder + "/job.yaml";
  absl::StatusOr<TrainingJob> job = LoadJobFile(path, {});
  CHECK(absl::IsNotFound(job.status()));
  CHECK(job.status().message() == path + ": No such file or directory");
  CHECK(LoadJobFile(folder, {}).status().message() == folder + ": is a folder; name the job file");
  std::ofstream(path) << kJob;
  job = LoadJobFile(path, {});
  REQUIRE(job.ok());
  CHECK(job->spec().data().train(0) == folder + "/train.tsv");
  std::ofstream(path) << std::string(kMaxJobFileBytes + 1, ' ');
  CHECK(LoadJobFile(path, {}).status().message() ==
        path + ": is longer than 1048576 bytes; is it a job file?");
}

}  // namespace
}  // namespace strata

#include "tools/cli/job/file.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "proto/strata/job.pb.h"
#include "tests/temp_folder.h"

namespace strata {
namespace {

constexpr char kJob[] = R"(apiVersion: strata/v1
kind: TrainingJob
metadata:
  name: clicks
spec:
  data:
    format: criteo
    train: [train.tsv, ../more/day1.tsv]
    eval: [/data/test.tsv]
  model:
    type: deepfm
    hidden: [64, 32]
  training:
    lanes: 4
    batchSize: 128
)";

absl::StatusOr<TrainingJob> Parse(const std::string& text,
                                  const std::vector<std::string>& overrides = {}) {
  return ParseJobText(text, "job.yaml", "/jobs", overrides);
}

// The message for kJob with `from` (which must be there) replaced by `to`; "OK" when it is right.
std::string Problem(const std::string& from, const std::string& to) {
  REQUIRE(std::string(kJob).find(from) != std::string::npos);
  absl::StatusOr<TrainingJob> job = Parse(absl::StrReplaceAll(kJob, {{from, to}}));
  if (job.ok()) return "OK";
  CHECK(absl::IsInvalidArgument(job.status()));
  return std::string(job.status().message());
}

std::string SetProblem(const std::string& override_text) {
  absl::StatusOr<TrainingJob> job = Parse(kJob, {override_text});
  if (job.ok()) return "OK";
  CHECK(absl::IsInvalidArgument(job.status()));
  return std::string(job.status().message());
}

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

// The job of kJob with `init` as its spec.model.initFrom, in YAML.
std::string WithInit(const std::string& init) {
  return absl::StrReplaceAll(kJob, {{"type: deepfm", "type: deepfm\n    initFrom: " + init}});
}

TEST_CASE("initFrom is a folder, or a message", "[job_file]") {
  const auto init = [](const absl::StatusOr<TrainingJob>& job) {
    INFO(job.status());
    REQUIRE(job.ok());
    InitFromSpec read = job->spec().model().init_from();
    std::string text = absl::StrCat(read.checkpoint(), " ", read.new_tensors(), " ",
                                    read.dropped_tensors(), " ", read.optimizer_state());
    for (const char* name : {"a", "b"}) {
      const auto found = read.rename().find(name);
      if (found != read.rename().end()) absl::StrAppend(&text, " ", name, ">", found->second);
    }
    return text;
  };
  const std::string plain = "/jobs/c refuse refuse keep", all = "/jobs/c allow allow reset a>x b>y";
  const std::string message =
      "{checkpoint: c, newTensors: allow, droppedTensors: allow, optimizerState: reset, "
      "rename: {a: x, b: y}}";
  CHECK(init(Parse(WithInit("c"))) == plain);
  CHECK(init(Parse(WithInit("{checkpoint: c}"))) == plain);
  CHECK(init(Parse(WithInit(message))) == all);
  CHECK(init(Parse(kJob, {"spec.model.initFrom=c"})) == plain);
  CHECK(init(Parse(kJob, {"spec.model.initFrom='c'"})) == plain);
  CHECK(init(Parse(kJob, {"spec.model.initFrom.checkpoint=c"})) == plain);
  CHECK(init(Parse(kJob, {"spec.model.initFrom=" + message})) == all);
  CHECK(init(Parse(kJob, {"spec.model.initFrom=c", "spec.model.initFrom.newTensors=allow",
                          "spec.model.initFrom.droppedTensors=allow",
                          "spec.model.initFrom.optimizerState=reset",
                          "spec.model.initFrom.rename={a: x, b: y}"})) == all);
  CHECK(init(Parse(WithInit(message), {"spec.model.initFrom=c"})) == plain);
  const absl::StatusOr<TrainingJob> none = Parse(WithInit(message), {"spec.model.initFrom="});
  REQUIRE(none.ok());
  CHECK_FALSE(none->spec().model().has_init_from());

  const auto json = [](const std::string& value) {
    return Parse(
        "{\"apiVersion\": \"strata/v1\", \"kind\": \"TrainingJob\", \"metadata\": {\"name\": "
        "\"j\"},"
        "\"spec\": {\"data\": {\"format\": \"libfm\", \"train\": [\"a\"]}, \"model\": "
        "{\"type\": \"lr\", \"initFrom\": " +
        value + "}}}");
  };
  CHECK(init(json("\"c\"")) == plain);
  CHECK(init(json(
            "{\"checkpoint\": \"c\", \"newTensors\": \"allow\", \"droppedTensors\": \"allow\","
            "\"optimizerState\": \"reset\", \"rename\": {\"a\": \"x\", \"b\": \"y\"}}")) == all);

  const auto text = [](const std::string& value, const std::string& rest = "") {
    return ParseJobText(
        "api_version: \"strata/v1\" kind: \"TrainingJob\" metadata { name: \"j\" }\n"
        "spec { data { format: \"libfm\" train: \"a\" }  # init_from: \"no\"\n"
        "  model { type: \"lr\" init_from" +
            value + " " + rest + " } }",
        "job.textproto", "/jobs", {});
  };
  for (const char* folder : {": \"c\"", ":\"c\"", ": 'c'", " :  # the folder\n\"c\"",
                             ": \"\" \"c\"", " { checkpoint: \"c\" }", ": {checkpoint: \"c\"}"}) {
    INFO(folder);
    CHECK(init(text(folder)) == plain);
  }
  CHECK(init(text(" { checkpoint: \"c\" new_tensors: \"allow\" dropped_tensors: \"allow\" "
                  "optimizer_state: \"reset\" rename { key: \"a\" value: \"x\" } "
                  "rename { key: \"b\" value: \"y\" } }")) == all);
  // Places are those of the file, whatever was put between.
  CHECK(text(": \"c\"", "hash_sed: 1").status().message() ==
        "job.textproto:3:45: unknown field 'hash_sed'; did you mean 'hash_seed'?");
  CHECK(
      text(": \"c\"", "embedding_dim: 9999").status().message() ==
      "job.textproto:3:37: spec.model.embeddingDim: 9999 is outside the limits; give a number from "
      "1 to 4096");
}

TEST_CASE("what is wrong with initFrom is named", "[job_file]") {
  const auto problem = [](const std::string& init) {
    const absl::StatusOr<TrainingJob> job = Parse(WithInit(init));
    return job.ok() ? "OK" : std::string(job.status().message());
  };
  CHECK(problem("{newTensors: allow}") ==
        "job.yaml: spec.model.initFrom.checkpoint: is missing; name the folder of one checkpoint");
  CHECK(problem("{checkpoint: c, newTensors: yes}") ==
        "job.yaml:12:43: spec.model.initFrom.newTensors: 'yes' is not one of: refuse, allow");
  CHECK(problem("{checkpoint: c, droppedTensors: maybe}") ==
        "job.yaml:12:47: spec.model.initFrom.droppedTensors: 'maybe' is not one of: refuse, allow");
  CHECK(problem("{checkpoint: c, optimizerState: drop}") ==
        "job.yaml:12:47: spec.model.initFrom.optimizerState: 'drop' is not one of: keep, reset");
  CHECK(problem("{checkpoint: c, newTensor: allow}") ==
        "job.yaml:12:31: spec.model.initFrom: unknown field 'newTensor'; did you mean "
        "'newTensors'?");
  CHECK(problem("{checkpoint: c, rename: [a]}") ==
        "job.yaml:12:39: spec.model.initFrom.rename: expects a mapping of text to text; found a "
        "list");
  CHECK(problem("{checkpoint: c, rename: {a: x, b: x}}")
            .find("spec.model.initFrom.rename: 'b' becomes 'x', which is the new name of another "
                  "one") != std::string::npos);
  CHECK(problem("[c]").find("spec.model.initFrom: expects") != std::string::npos);
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

constexpr char kTagsYaml[] = R"(apiVersion: strata/v1
kind: TrainingJob
metadata: {name: tags}
spec:
  data:
    format: csv
    train: [a.csv]
    columns:
      label: y
      multiValued:
        - {column: genres}
        - {column: tags, separator: ";", pooling: mean}
  model: {type: lr}
)";

TEST_CASE("columns of several values are the same in every language", "[job_file]") {
  const auto yaml = Parse(kTagsYaml);
  INFO(yaml.status().message());
  REQUIRE(yaml.ok());
  const ColumnsSpec& columns = yaml->spec().data().columns();
  REQUIRE(columns.multi_valued().size() == 2);
  CHECK(columns.multi_valued(0).column() == "genres");
  CHECK(columns.multi_valued(1).separator() == ";");
  CHECK(columns.multi_valued(1).pooling() == "mean");
  const auto json = Parse(
      R"({"apiVersion": "strata/v1", "kind": "TrainingJob", "metadata": {"name": "tags"},
          "spec": {"data": {"format": "csv", "train": ["a.csv"], "columns": {"label": "y",
            "multiValued": [{"column": "genres"},
                            {"column": "tags", "separator": ";", "pooling": "mean"}]}},
            "model": {"type": "lr"}}})");
  INFO(json.status().message());
  REQUIRE(json.ok());
  CHECK(json->SerializeAsString() == yaml->SerializeAsString());
  const auto set = Parse(absl::StrReplaceAll(kTagsYaml, {{"genres", "other"}, {"tags}", "j}"}}),
                         {"metadata.name=tags",
                          "spec.data.columns.multiValued=[{column: genres}, "
                          "{column: tags, separator: ;, pooling: mean}]"});
  INFO(set.status().message());
  REQUIRE(set.ok());
  CHECK(set->SerializeAsString() == yaml->SerializeAsString());
  const auto textproto = ParseJobText(
      R"(api_version: "strata/v1" kind: "TrainingJob" metadata { name: "tags" }
         spec {
           data {
             format: "csv" train: "a.csv"
             columns {
               label: "y"
               multi_valued { column: "genres" }
               multi_valued { column: "tags" separator: ";" pooling: "mean" }
             }
           }
           model { type: "lr" }
         })",
      "job.textproto", "/jobs", {});
  INFO(textproto.status().message());
  REQUIRE(textproto.ok());
  CHECK(textproto->SerializeAsString() == yaml->SerializeAsString());
}

TEST_CASE("transforms of fields are the same in every language", "[job_file]") {
  const std::string head =
      "apiVersion: strata/v1\nkind: TrainingJob\nmetadata: {name: j}\n"
      "spec:\n"
      "  data: {format: csv, train: [a.csv], columns: {label: y}}\n"
      "  model: {type: lr}\n";
  const auto yaml = Parse(
      head +
      "  fields:\n"
      "    - {name: a, kind: numeric, transform: {type: standardise, mean: 0.1, deviation: 3}}\n"
      "    - {name: b, kind: numeric, transform: {type: bucketise, bounds: [-1, 0.1, 1e300]}}\n"
      "    - {name: c, kind: categorical, vocabulary: {file: words.txt}}\n");
  INFO(yaml.status().message());
  REQUIRE(yaml.ok());
  REQUIRE(yaml->spec().fields_size() == 3);
  const TransformConfig& bucketise = yaml->spec().fields(1).transform();
  CHECK(yaml->spec().fields(0).transform().mean() == 0.1);
  CHECK(yaml->spec().fields(0).transform().deviation() == 3);
  REQUIRE(bucketise.bounds_size() == 3);
  CHECK(bucketise.bounds(0) == -1);
  CHECK(bucketise.bounds(1) == 0.1);
  CHECK(bucketise.bounds(2) == 1e300);
  CHECK(yaml->spec().fields(2).vocabulary().file() == "/jobs/words.txt");
  const auto set = Parse(
      head, {"spec.fields=[{name: a, kind: numeric, transform: {type: standardise, mean: 0.1, "
             "deviation: 3}}, {name: b, kind: numeric, transform: {type: bucketise, bounds: [-1, "
             "0.1, 1e300]}}, {name: c, kind: categorical, vocabulary: {file: words.txt}}]"});
  INFO(set.status().message());
  REQUIRE(set.ok());
  CHECK(set->SerializeAsString() == yaml->SerializeAsString());
  const auto textproto = ParseJobText(
      R"(api_version: "strata/v1" kind: "TrainingJob" metadata { name: "j" }
         spec {
           data { format: "csv" train: "a.csv" columns { label: "y" } }
           model { type: "lr" }
           fields { name: "a" kind: "numeric"
                    transform { type: "standardise" mean: 0.1 deviation: 3 } }
           fields { name: "b" kind: "numeric"
                    transform { type: "bucketise" bounds: [-1, 0.1, 1e300] } }
           fields { name: "c" kind: "categorical" vocabulary { file: "words.txt" } }
         })",
      "job.textproto", "/jobs", {});
  INFO(textproto.status().message());
  REQUIRE(textproto.ok());
  CHECK(textproto->SerializeAsString() == yaml->SerializeAsString());
  CHECK(Parse(head + "  fields: [{name: a, kind: numeric, transform: {type: clip, min: low}}]\n")
            .status()
            .message() ==
        "job.yaml:7:66: spec.fields[0].transform.min: 'low' is not a finite number; write one as "
        "0.5 or 1e-3");
}

TEST_CASE("a label's mean is the same in every language", "[job_file]") {
  const std::string head =
      "apiVersion: strata/v1\nkind: TrainingJob\nmetadata: {name: j}\n"
      "spec:\n"
      "  data: {format: csv, train: [a.csv], columns: {categorical: [c]}}\n"
      "  model: {type: lr}\n";
  const std::string labels =
      "[{name: click, mean: 0.03}, {name: stars, kind: real, weight: 0.2, mean: -3.2}, "
      "{name: visits, kind: count}]";
  const auto yaml = Parse(head + "  labels: " + labels + "\n");
  INFO(yaml.status().message());
  REQUIRE(yaml.ok());
  CHECK(yaml->spec().labels(0).mean() == 0.03f);
  CHECK(yaml->spec().labels(1).mean() == -3.2f);
  CHECK_FALSE(yaml->spec().labels(2).has_mean());
  const auto set = Parse(head, {"spec.labels=" + labels});
  INFO(set.status().message());
  REQUIRE(set.ok());
  CHECK(set->SerializeAsString() == yaml->SerializeAsString());
  const auto textproto = ParseJobText(
      R"(api_version: "strata/v1" kind: "TrainingJob" metadata { name: "j" }
         spec {
           data { format: "csv" train: "a.csv" columns { categorical: "c" } }
           model { type: "lr" }
           labels { name: "click" mean: 0.03 }
           labels { name: "stars" kind: "real" weight: 0.2 mean: -3.2 }
           labels { name: "visits" kind: "count" }
         })",
      "job.textproto", "/jobs", {});
  INFO(textproto.status().message());
  REQUIRE(textproto.ok());
  CHECK(textproto->SerializeAsString() == yaml->SerializeAsString());
  const auto problem = [&](const std::string& label) {
    return std::string(Parse(head + "  labels: [" + label + "]\n").status().message());
  };
  CHECK(
      problem("{name: click, mean: 3%}") ==
      "job.yaml:7:32: spec.labels[0].mean: '3%' is not a finite number; write one as 0.5 or 1e-3");
  CHECK(problem("{name: click, mean: .nan}") ==
        "job.yaml:7:32: spec.labels[0].mean: '.nan' is not a finite number; write one as 0.5 or "
        "1e-3");
  CHECK(problem("{name: click, mean: 3}") ==
        "job.yaml:7:32: spec.labels[0].mean: 3 cannot be the mean of label 'click', whose kind is "
        "binary; give a number above 0 and below 1, about the share of 1, or remove it");
}

// A message cannot tell it from none, and of layers none are those of the default.
TEST_CASE("an empty list of layers is refused, not taken for the default's", "[job_file]") {
  const std::string why =
      "an empty list would be the default's layers; give a width for each layer, or remove it";
  CHECK(Problem("hidden: [64, 32]", "hidden: []") == "job.yaml:12:13: spec.model.hidden: " + why);
  for (const char* field : {"bottomHidden", "expertHidden", "towerHidden", "attentionHidden"}) {
    INFO(field);
    CHECK(Problem("hidden: [64, 32]", std::string(field) + ": []") ==
          absl::StrCat("job.yaml:12:", 7 + std::string(field).size(), ": spec.model.", field, ": ",
                       why));
  }
  CHECK(SetProblem("spec.model.hidden=[]") ==
        "--set spec.model.hidden=[]: spec.model.hidden: " + why);
  CHECK(SetProblem("spec.model.hidden=") == "OK");  // the default's, by intent
  CHECK(Problem("eval: [/data/test.tsv]", "eval: []") == "OK");
}

TEST_CASE("a wrong list of columns of several values is told with its place", "[job_file]") {
  const auto problem = [](const std::string& list) {
    const std::string text = absl::StrReplaceAll(kTagsYaml, {{R"(
        - {column: genres}
        - {column: tags, separator: ";", pooling: mean})",
                                                              " " + list}});
    const auto job = Parse(text);
    return job.ok() ? "OK" : std::string(job.status().message());
  };
  const std::string at = "spec.data.columns.multiValued";
  CHECK(problem("[{column: t}]") == "OK");
  CHECK(problem("x") ==
        "job.yaml:10:20: " + at +
            ": expects a list of mappings, each of: column, separator, pooling; found 'x'");
  CHECK(problem("{column: t}") ==
        "job.yaml:10:20: " + at +
            ": expects a list of mappings, each of: column, separator, pooling; found a mapping");
  CHECK(problem("[x]") == "job.yaml:10:21: " + at +
                              "[0]: expects a mapping of: column, separator, pooling; found 'x'");
  CHECK(problem("[{column: s}, {colum: t}]") ==
        "job.yaml:10:35: " + at + "[1]: unknown field 'colum'; did you mean 'column'?");
  CHECK(problem("[{column: t, pooling: max}]") ==
        "job.yaml:10:42: " + at + "[0].pooling: 'max' is not one of: sum, mean");
  CHECK(problem("[{column: t, pooling: [sum]}]") ==
        "job.yaml:10:42: " + at + "[0].pooling: expects text, found a list");
  CHECK(problem("") == "job.yaml:10:7: " + at +
                           ": has no value; give a list of mappings, each of: column, separator, "
                           "pooling, or remove it");
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

TEST_CASE("an unknown field is named with its place and the nearest name", "[job_file]") {
  CHECK(Problem("batchSize: 128", "batchsize: 128") ==
        "job.yaml:15:5: spec.training: unknown field 'batchsize'; did you mean 'batchSize'?");
  CHECK(Problem("batchSize: 128", "batch_size: 128") ==
        "job.yaml:15:5: spec.training: unknown field 'batch_size'; did you mean 'batchSize'?");
  CHECK(Problem("metadata:", "metdata:") ==
        "job.yaml:3:1: unknown field 'metdata'; did you mean 'metadata'?");
  CHECK(Problem("  model:\n", "  batchSize: 3\n  model:\n") ==
        "job.yaml:10:3: spec: unknown field 'batchSize'; did you mean 'spec.training.batchSize'?");
  CHECK(Problem("batchSize: 128", "gpuCount: 1")
            .find("job.yaml:15:5: spec.training: unknown field 'gpuCount'; the fields are: mode, "
                  "lanes, batchSize, epochs, ") == 0);
}

TEST_CASE("everything wrong is told at once", "[job_file]") {
  CHECK(Problem("lanes: 4\n    batchSize: 128", "lane: 4\n    batchSize: x") ==
        "job.yaml:14:5: spec.training: unknown field 'lane'; did you mean 'lanes'?\n"
        "job.yaml:15:16: spec.training.batchSize: 'x' is not a whole number (0, 1, 2, ...)");
}

TEST_CASE("wrong types are named", "[job_file]") {
  const std::string at = "job.yaml:15:16: spec.training.batchSize: ";
  CHECK(Problem("batchSize: 128", "batchSize: -1") ==
        at + "'-1' is not a whole number (0, 1, 2, ...)");
  CHECK(Problem("batchSize: 128", "batchSize: 1.5") ==
        at + "'1.5' is not a whole number (0, 1, 2, ...)");
  CHECK(Problem("batchSize: 128", "batchSize: 4294967296") ==
        at + "4294967296 is too large; the largest is 4294967295");
  CHECK(Problem("batchSize: 128", "batchSize: 99999999999999999999") ==
        at + "99999999999999999999 is too large; the largest is 4294967295");
  CHECK(Problem("batchSize: 128", "batchSize: \"128\"") ==
        at + "expects a whole number, but \"128\" is text; write it without quotes");
  CHECK(Problem("batchSize: 128", "batchSize: [1]") == at + "expects a whole number, found a list");
  CHECK(Problem("batchSize: 128", "batchSize: {a: 1}") ==
        at + "expects a whole number, found a mapping");
  CHECK(Problem("type: deepfm", "type: [deepfm]") ==
        "job.yaml:11:11: spec.model.type: expects text, found a list");
  CHECK(Problem("[64, 32]", "64") ==
        "job.yaml:12:13: spec.model.hidden: expects a list, found '64'; write [64]");
  CHECK(Problem("[64, 32]", "[64, big]") ==
        "job.yaml:12:18: spec.model.hidden[1]: 'big' is not a whole number (0, 1, 2, ...)");
  CHECK(
      Problem("    format: criteo", "    shuffle: yes\n    format: criteo") ==
      "job.yaml:7:14: spec.data.shuffle: expects a mapping of: enabled, bufferLines; found 'yes'");
  CHECK(Problem("    format: criteo", "    shuffle: {enabled: yes}\n    format: criteo") ==
        "job.yaml:7:24: spec.data.shuffle.enabled: expects true or false, not 'yes'");
  CHECK(Problem("  training:", "  optimizer: {sparse: {learningRate: fast}}\n  training:") ==
        "job.yaml:13:38: spec.optimizer.sparse.learningRate: 'fast' is not a finite number; write "
        "one as 0.5 or 1e-3");
  CHECK(Problem("  training:", "  optimizer: {sparse: {learningRate: nan}}\n  training:") ==
        "job.yaml:13:38: spec.optimizer.sparse.learningRate: 'nan' is not a finite number; write "
        "one as 0.5 or 1e-3");
  CHECK(
      Problem("  training:", "  optimizer: {sparse: {learningRate: 1e39}}\n  training:") ==
      "job.yaml:13:38: spec.optimizer.sparse.learningRate: 1e39 is too large for a 32-bit number");
}

TEST_CASE("a field without a value is named", "[job_file]") {
  CHECK(Problem("batchSize: 128", "batchSize:") ==
        "job.yaml:15:5: spec.training.batchSize: has no value; give a whole number, or remove it");
}

TEST_CASE("a field given twice is refused", "[job_file]") {
  CHECK(Problem("batchSize: 128", "lanes: 8") ==
        "job.yaml:15:5: spec.training: field 'lanes' is given twice");
}

TEST_CASE("malformed YAML is told with line and column", "[job_file]") {
  CHECK(Problem("train: [train.tsv,", "train: [train.tsv\n   :") ==
        "job.yaml:9:4: end of sequence flow not found");
  CHECK(Problem("  name: clicks", "\tname: clicks") ==
        "job.yaml:4:6: illegal map value (line 4 is indented with a tab; YAML wants spaces)");
  CHECK(Problem("[64, 32]", "[64, 32") == "job.yaml:13:11: end of sequence flow not found");
}

TEST_CASE("a value that cannot be is told with its place", "[job_file]") {
  CHECK(Problem("lanes: 4", "lanes: 0") ==
        "job.yaml:14:12: spec.training.lanes: 0 is outside the limits; give a number from 1 to "
        "4096");
  CHECK(Problem("[64, 32]", "[64, 0]") ==
        "job.yaml:12:18: spec.model.hidden[1]: 0 is outside the limits; give a number from 1 to "
        "16384");
  CHECK(Problem("    format: criteo\n", "") ==
        "job.yaml: spec.data.format: is missing; give one of: criteo, criteo_csv, libfm, libsvm, "
        "libffm, csv");
}

TEST_CASE("a message is one line, whatever a user's text in it holds", "[job_file]") {
  CHECK(Problem("format: criteo", "format: \"cri\\nteo\"") ==
        "job.yaml:7:13: spec.data.format: 'cri\\nteo' is not one of: criteo, criteo_csv, libfm, "
        "libsvm, libffm, csv");
  CHECK(Problem("lanes: 4", "lanes: \"4\\n5\"") ==
        "job.yaml:14:12: spec.training.lanes: expects a whole number, but \"4\\n5\" is text; write "
        "it "
        "without quotes");
  CHECK(Problem("lanes: 4", "\"la\\nnes\": 4") ==
        "job.yaml:14:5: spec.training: unknown field 'la\\nnes'; did you mean 'lanes'?");
  CHECK(SetProblem("spec.model.type=deep\nfm").find("--set spec.model.type=deep\\nfm: ") == 0);
  for (const std::string& problem :
       {SetProblem("spec.model.type=deep\nfm"), SetProblem("spec.none=a\nb"), SetProblem("a\nb"),
        SetProblem("spec.storage.dramBytesPerServer=4\nx")}) {
    INFO(problem);
    CHECK(problem != "OK");
    CHECK(problem.find('\n') == std::string::npos);
  }
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

constexpr char kTextproto[] = R"(# Comments are allowed.
api_version: "strata/v1"
kind: "TrainingJob"
metadata { name: "clicks" }
spec {
  data {
    format: "criteo"
    train: ["train.tsv", "../more/day1.tsv"]
    eval: "/data/test.tsv"
  }
  model { type: "deepfm" hidden: 64 hidden: 32 }
  training {
    lanes: 4
    batch_size: 128
  }
}
)";

std::string TextprotoProblem(const std::string& from, const std::string& to) {
  REQUIRE(std::string(kTextproto).find(from) != std::string::npos);
  const std::string text = absl::StrReplaceAll(kTextproto, {{from, to}});
  absl::StatusOr<TrainingJob> job = ParseJobText(text, "job.textproto", "/jobs", {});
  if (job.ok()) return "OK";
  CHECK(absl::IsInvalidArgument(job.status()));
  return std::string(job.status().message());
}

TEST_CASE("a job in protobuf's text format is the job of its YAML", "[job_file]") {
  const auto yaml = Parse(kJob, {"spec.training.seed=7"});
  REQUIRE(yaml.ok());
  for (const char* name : {"job.textproto", "a/b.pbtxt", "job.txtpb"}) {
    const auto job = ParseJobText(kTextproto, name, "/jobs", {"spec.training.seed=7"});
    INFO(job.status().ToString());
    REQUIRE(job.ok());
    CHECK(job->SerializeAsString() == yaml->SerializeAsString());
  }
  CHECK(ParseJobText(std::string("\xEF\xBB\xBF") + kTextproto, "job.textproto", "/jobs", {}).ok());
  CHECK_FALSE(ParseJobText(kTextproto, "job.yaml", "/jobs", {}).ok());
}

TEST_CASE("what is wrong in the text format is told by line", "[job_file]") {
  CHECK(TextprotoProblem("lanes", "lane") ==
        "job.textproto:13:9: unknown field 'lane'; did you mean 'lanes'?");
  CHECK(TextprotoProblem("batch_size", "batchSize") ==
        "job.textproto:14:14: unknown field 'batchSize'; did you mean 'batch_size'?");
  CHECK(TextprotoProblem("lanes: 4", "embedding_dim: 4") ==
        "job.textproto:13:18: unknown field 'embedding_dim'; did you mean "
        "'spec.model.embedding_dim'?");
  CHECK(
      TextprotoProblem("batch_size: 128", "batch_size: 0") ==
      "job.textproto:14:5: spec.training.batchSize: 0 is outside the limits; give a number from 1 "
      "to 1048576");
  CHECK(TextprotoProblem("eval: \"/data/test.tsv\"", "eval: [\"a\", \"\"]") ==
        "job.textproto:9:5: spec.data.eval[1]: is empty; name a file");
  CHECK(TextprotoProblem("name: \"clicks\"", "") ==
        "job.textproto: metadata.name: is missing; name the job");
  CHECK(TextprotoProblem("lanes: 4", "lanes: \"4\"") ==
        "job.textproto:13:12: Expected integer, got: \"4\"");
  CHECK(TextprotoProblem("lanes: 4", "lanes: 4 lanes: 5").find("job.textproto:13:") == 0);
  CHECK(TextprotoProblem("lanes: 4", "lanes: -1").find("job.textproto:13:") == 0);
  CHECK(TextprotoProblem("lanes: 4", "lanes: 4294967296").find("job.textproto:13:") == 0);
  CHECK(TextprotoProblem("lanes: 4", "local_learning_rate: nan") ==
        "job.textproto:13:5: spec.training.localLearningRate: nan is not a finite 32-bit number");
  CHECK(TextprotoProblem("hidden: 64 hidden: 32", "hidden: [ ]") ==
        "job.textproto:11:26: spec.model.hidden: an empty list would be the default's layers; give "
        "a width for each layer, or remove it");
  CHECK(TextprotoProblem("hidden: 64 hidden: 32", "hidden: [64, 32]") == "OK");
  CHECK(TextprotoProblem("train: [\"train.tsv\", \"../more/day1.tsv\"]",
                         "train: \"hidden: []\" # hidden: []") == "OK");
  CHECK(TextprotoProblem("eval: \"/data/test.tsv\"", "eval: []") == "OK");
  CHECK(TextprotoProblem("training {", "training {{").find("job.textproto:12:") == 0);
  CHECK(TextprotoProblem("# Comments are allowed.", std::string("\0", 1)) ==
        "job.textproto: holds a zero byte; is it text?");
}

}  // namespace
}  // namespace strata

// What a job file says is the same in YAML, JSON, the text format and --set.
#include <catch2/catch.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "proto/strata/job.pb.h"
#include "tests/tools/cli/job/example_job.h"
#include "tools/cli/job/file.h"

namespace strata {
namespace {

// The job of kJob with `init` as its spec.model.initFrom, in YAML.
std::string WithInit(const std::string& init) {
  return absl::StrReplaceAll(kJob, {{"type: deepfm", "type: deepfm\n    initFrom: " + init}});
}

// A job in one language, and in YAML.
void CheckSame(const absl::StatusOr<TrainingJob>& job, const TrainingJob& yaml) {
  INFO(job.status().message());
  REQUIRE(job.ok());
  CHECK(job->SerializeAsString() == yaml.SerializeAsString());
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
  CheckSame(json, *yaml);
  const auto set = Parse(absl::StrReplaceAll(kTagsYaml, {{"genres", "other"}, {"tags}", "j}"}}),
                         {"metadata.name=tags",
                          "spec.data.columns.multiValued=[{column: genres}, "
                          "{column: tags, separator: ;, pooling: mean}]"});
  CheckSame(set, *yaml);
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
  CheckSame(textproto, *yaml);
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
  CheckSame(set, *yaml);
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
  CheckSame(textproto, *yaml);
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
  CheckSame(set, *yaml);
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
  CheckSame(textproto, *yaml);
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

}  // namespace
}  // namespace strata

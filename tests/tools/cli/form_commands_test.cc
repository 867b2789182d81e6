// What `strata validate --form` prints is the same job: it trains the same model, and comes back.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "tests/bad_input/user.h"
#include "tests/tools/cli/small_formats.h"

namespace strata {
namespace {

std::string ModelHash(const User& user, const std::string& job) {
  const ProgramResult r = user.Strata("train --json --overwrite -f " + job);
  INFO(job << "\n" << r.out << r.err);
  REQUIRE(r.exit_code == 0);
  const std::vector<std::string> lines = absl::StrSplit(r.out, '\n', absl::SkipEmpty());
  REQUIRE(!lines.empty());
  return nlohmann::json::parse(lines.back()).at("modelHash").get<std::string>();
}

// Writes the job as `form` has it to TO; returns what stderr says of it.
std::string Change(const User& user, const std::string& job, const std::string& form,
                   const std::string& to) {
  const ProgramResult r = user.Strata("validate --json --form " + form + " -f " + job);
  INFO(job << " as " << form << "\n" << r.err);
  REQUIRE(r.exit_code == 0);
  user.Write(to, r.out);
  return r.err;
}

// Goes on from the newest checkpoint, whose job had one epoch less.
void Resume(const User& user, const std::string& job, int epochs) {
  const ProgramResult r = user.Strata("train --resume -f " + job +
                                      " --set spec.data.maxBadLines=9 "
                                      "--set spec.training.epochs=" +
                                      std::to_string(epochs));
  INFO(job << "\n" << r.err);
  CHECK(r.exit_code == 0);
}

struct Shape {
  std::string name, model, data;
};

constexpr char kColumns[] =
    "{format: csv, train: [train.csv], columns: {label: y, numeric: [n], categorical: [c, d], "
    "multiValued: [{column: t, pooling: mean}], ignored: ['*']}}";

const std::vector<Shape>& ColumnShapes() {
  static const std::vector<Shape> shapes = {
      {"csv", "{type: deepfm, embeddingDim: 4, hidden: [5]}", kColumns},
      {"seed", "{type: mmoe, embeddingDim: 4, experts: 2, expertHidden: [3], hashSeed: 7}",
       kColumns},
      {"table", "{type: fm, embeddingDim: 4}",
       std::string(kColumns) + "\n  tables: [{name: features}]"},
      {"headless", "{type: dlrm, embeddingDim: 4, hidden: [5], bottomHidden: [6]}",
       "{format: csv, train: [headless.csv], columns: {header: false, label: '0', "
       "numeric: ['1'], categorical: ['3', '2'], ignored: ['*']}}"},
      {"criteo", "{type: dcn_v2, embeddingDim: 4, hidden: [5]}",
       "{format: criteo, train: [train.tsv]}"},
      {"buckets", "{type: wide_deep, embeddingDim: 4, hidden: [5]}",
       "{format: criteo, train: [train.tsv], integerFeatures: bucket}"},
      {"criteo_csv", "{type: din, embeddingDim: 4, hidden: [5]}",
       "{format: criteo_csv, train: [criteo.csv]}"},
      {"libfm", "{type: shared_bottom, embeddingDim: 4, hidden: [5]}",
       "{format: libfm, train: [train.libfm], maxBadLines: 1}"},
      {"libsvm", "{type: lr}",
       "{format: libsvm, train: [train.libfm], maxBadLines: 1}\n"
       "  tables: [{name: clicks, optimizer: {type: ftrl}}]"},
      {"libffm", "{type: deepfm, embeddingDim: 4, hidden: [5]}",
       "{format: libffm, train: [train.libffm], maxBadLines: 1}"},
      {"libffm_table", "{type: lr}",
       "{format: libffm, train: [train.libffm], maxBadLines: 1}\n"
       "  tables: [{name: features, optimizer: {type: sgd}}]"},
  };
  return shapes;
}

void WriteShapes(const User& user) {
  WriteSmallData(user);
  const std::string csv = user.Read("train.csv");
  std::string headless;
  for (const auto line : absl::StrSplit(csv.substr(csv.find('\n') + 1), '\n', absl::SkipEmpty())) {
    const std::vector<std::string> columns = absl::StrSplit(line, ',');
    headless += columns[0] + "," + columns[1] + "," + columns[2] + "," + columns[3] + "\n";
  }
  user.Write("headless.csv", headless);
}

TEST_CASE("columns as fields and back are one job and one model", "[strata]") {
  User user;
  WriteShapes(user);
  const Shape shape = GENERATE(from_range(ColumnShapes()));
  INFO(shape.name);
  WriteSmallJob(user, "job", shape.model, shape.data);
  const std::string hash = ModelHash(user, "job.yaml");
  Change(user, "job.yaml", "columns", "columns.json");  // as it is, with every default
  const std::string said = Change(user, "job.yaml", "fields", "fields.json");
  CHECK((said.find("whose label '") != said.npos) ==
        (shape.data.find("csv, train") != said.npos && shape.name != "criteo_csv"));
  const nlohmann::json fields = nlohmann::json::parse(user.Read("fields.json"));
  CHECK(fields.at("spec").contains("fields"));
  CHECK(fields.at("spec").contains("labels"));
  CHECK(ModelHash(user, "fields.json") == hash);
  Change(user, "fields.json", "columns", "back.json");
  const nlohmann::json back = nlohmann::json::parse(user.Read("back.json"));
  CHECK_FALSE(back.at("spec").contains("fields"));
  CHECK_FALSE(back.at("spec").contains("labels"));
  // Such a table says nothing, and is left out.
  if (shape.name == "table") CHECK(ModelHash(user, "back.json") == hash);
  if (shape.name != "table") CHECK(user.Read("back.json") == user.Read("columns.json"));
  Resume(user, "job.yaml", 2);  // from a checkpoint of the other form
  Resume(user, "fields.json", 3);
}

TEST_CASE("fields as columns and back are one job and one model", "[strata]") {
  User user;
  WriteShapes(user);
  const Shape shape = GENERATE(
      Shape{"csv", "{type: fm, embeddingDim: 4}",
            "{format: csv, train: [train.csv]}\n  labels: [{name: y}]\n"
            "  fields:\n    - {name: d, kind: categorical}\n"
            "    - {name: n, kind: numeric}\n    - {name: c, kind: categorical, defaultValue: ''}\n"
            "    - {name: t, kind: multiValued, pooling: mean, defaultValue: ''}"},
      Shape{"criteo", "{type: deepfm, embeddingDim: 4, hidden: [5]}",
            "{format: criteo, train: [train.tsv]}\n"
            "  fields: [{name: C3, kind: categorical}, {name: I1, kind: numeric}]\n"
            "  labels: [{name: label}]"},
      Shape{"libfm", "{type: fm, embeddingDim: 4}",
            "{format: libfm, train: [train.libfm], maxBadLines: 1}\n"
            "  tables: [{name: features}]\n"
            "  fields: [{name: features, column: '0', kind: multiValued, table: features}]"},
      Shape{"libffm", "{type: lr}",
            "{format: libffm, train: [train.libffm], maxBadLines: 1}\n"
            "  fields: [{name: '6', kind: multiValued}, {name: '0', kind: multiValued}]"});
  INFO(shape.name);
  WriteSmallJob(user, "job", shape.model, shape.data);
  const std::string hash = ModelHash(user, "job.yaml");
  Change(user, "job.yaml", "columns", "columns.json");
  CHECK(ModelHash(user, "columns.json") == hash);
  Change(user, "columns.json", "fields", "fields.json");
  CHECK(ModelHash(user, "fields.json") == hash);
  Resume(user, "job.yaml", 2);
}

TEST_CASE("what the other form means else is said, and what it cannot say is named", "[strata]") {
  User user;
  WriteShapes(user);
  WriteSmallJob(user, "job", "{type: fm, embeddingDim: 4}", kColumns);
  CHECK(Change(user, "job.yaml", "fields", "fields.json") ==
        "strata: note: in spec.labels a line whose label 'y' is empty says nothing of it, and is a "
        "good line; in spec.data.columns.label it is a bad one\njob.yaml is right\n");
  // The schema is that of the job that is printed.
  CHECK(user.Strata("validate -f job.yaml").err.find("\nlabel label  binary  column y  loss ") !=
        std::string::npos);
  CHECK(user.Strata("validate --form fields -f job.yaml").err.find("\nlabel y  binary  loss ") !=
        std::string::npos);
  // And that is so: a line without a label is bad in one form, and says nothing in the other.
  user.Write("train.csv", user.Read("train.csv") + ",1,c1,d1,t\n");
  CHECK(user.Strata("train --overwrite -f job.yaml").exit_code == 1);
  CHECK(user.Strata("train --overwrite -f fields.json").exit_code == 0);
  const std::string piped = "--set \"spec.data.train=['-']\" --set spec.data.maxBadLines=1";
  WriteSmallJob(user, "ffm", "{type: lr}", "{format: libffm, train: [train.libffm]}");
  CheckOneLine(user.Strata("validate --form fields -f ffm.yaml " + piped), 2,
               {"ffm.yaml: spec.data.format: libffm says in its lines how many fields there are",
                "; fields: known when the data are indexed (standard input is read by the job "
                "alone)"});
  const auto refused = [&](const std::string& set, const std::string& says) {
    CheckOneLine(user.Strata("validate --form columns -f fields.json --set '" + set + "'"), 2,
                 {"fields.json: " + says, "; only the form of spec.fields can say it"});
  };
  refused("spec.labels=[{name: y, weight: 0.5}]",
          "spec.labels[0].weight: label 'y' has a loss of weight 0.5, which spec.data cannot say");
  refused(
      "spec.fields=[{name: b, column: n, kind: numeric, transform: {type: bucketise, bounds: "
      "[1]}}]",
      "spec.fields[0].name: field 'b' has another name than its column 'n'");
  refused(
      "spec.fields=[{name: n, kind: numeric, transform: {type: bucketise, bounds: [1]}}]",
      "spec.fields[0].transform: field 'n' has a transform, which spec.data.columns cannot say");
}

}  // namespace
}  // namespace strata

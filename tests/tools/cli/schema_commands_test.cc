// What `strata validate` and `strata explain` print of a job's schema is what the checkpoint of the
// job has, of every model over every format.
#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/bad_input/user.h"
#include "tests/tools/cli/small_formats.h"

namespace strata {
namespace {

struct Case {
  std::string name;
  std::string text;  // of the job file: spec.model, or spec.data and what goes with it
};

// In the order of proto/job/model/model_types.h, each with a shape of its own.
const std::vector<Case>& Models() {
  static const std::vector<Case> models = {
      {"lr", "{type: lr}"},
      {"fm", "{type: fm, embeddingDim: 4}"},
      {"deepfm", "{type: deepfm, embeddingDim: 4, hidden: [5, 3]}"},
      {"wide_deep", "{type: wide_deep, embeddingDim: 4, hidden: [5]}"},
      {"dcn_v2", "{type: dcn_v2, embeddingDim: 3, hidden: [5], crossLayers: 2, crossRank: 2}"},
      {"dlrm", "{type: dlrm, embeddingDim: 4, hidden: [5], bottomHidden: [6]}"},
      {"shared_bottom", "{type: shared_bottom, embeddingDim: 4, hidden: [5], towerHidden: [2]}"},
      {"mmoe", "{type: mmoe, embeddingDim: 4, experts: 2, expertHidden: [3]}"},
      {"din", "{type: din, embeddingDim: 4, hidden: [5]}"},
  };
  return models;
}

// spec.data of each format, and what else says which fields there are.
const std::vector<Case>& Formats() {
  static const std::vector<Case> formats = {
      {"criteo", "{format: criteo, train: [train.tsv]}"},
      {"buckets", "{format: criteo, train: [train.tsv], integerFeatures: bucket}"},
      {"criteo_csv", "{format: criteo_csv, train: [criteo.csv]}"},
      {"libfm",
       "{format: libfm, train: [train.libfm], maxBadLines: 1}\n  tables: [{name: things}]"},
      {"libsvm", "{format: libsvm, train: [train.libfm], maxBadLines: 1}"},
      {"libffm",
       "{format: libffm, train: [train.libffm], maxBadLines: 1}\n"
       "  fields: [{name: item, column: '2', kind: multiValued}]"},
      {"columns",
       "{format: csv, train: [train.csv], columns: {label: y, numeric: [n], categorical: [c, d], "
       "multiValued: [{column: t}]}}"},
      {"fields",
       "{format: csv, train: [train.csv]}\n"
       "  labels: [{name: y}, {name: n, kind: real}]\n"
       "  fields:\n    - {name: c, kind: categorical}\n"
       "    - {name: t, kind: multiValued, pooling: max}\n"
       "    - {name: few, column: d, kind: categorical}"},
  };
  return formats;
}

// Trains the job NAME.yaml, and holds what is printed of it before against its checkpoint.
void CheckPrintedAsTrained(const User& user, const std::string& name) {
  const ProgramResult declared = user.Strata("validate --schema -f " + name + ".yaml");
  INFO(name << "\n" << declared.out << declared.err);
  REQUIRE(declared.exit_code == 0);
  CHECK(declared.out.find("\ntensor ") != std::string::npos);
  CHECK(declared.out.find("\nfield ") != std::string::npos);
  CHECK(declared.out.find("\ndata ") != std::string::npos);
  CHECK(declared.out.find(": known when") == std::string::npos);
  const ProgramResult trained = user.Strata("train -f " + name + ".yaml");
  INFO(trained.err);
  REQUIRE(trained.exit_code == 0);
  const ProgramResult shown = user.Strata("checkpoint show " + name);
  INFO(shown.out);
  CHECK(shown.out.ends_with("\n\n" + declared.out));
}

TEST_CASE("what is printed of a job is what its checkpoint has", "[strata]") {
  User user;
  WriteSmallData(user);
  const Case format = GENERATE(from_range(Formats()));
  for (const Case& model : Models()) {
    const std::string name = absl::StrCat(model.name, "-", format.name);
    WriteSmallJob(user, name, model.text, format.text);
    CheckPrintedAsTrained(user, name);
  }
  // The other commands print the same.
  const std::string job = absl::StrCat("dcn_v2-", format.name, ".yaml");
  const std::string schema = user.Strata("validate --schema -f " + job).out;
  CHECK(user.Strata("explain --schema " + job).out == schema);
  CHECK(user.Strata("validate -f " + job).err.find(schema) != std::string::npos);
  CHECK(user.Strata("validate --schema --json -f " + job).out ==
        user.Strata("explain --schema " + job + " --json").out);
}

TEST_CASE("sequences and tables of their own are printed as they are trained", "[strata]") {
  User user;
  WriteSmallData(user);
  WriteSmallJob(user, "visits", "{type: din, attentionHidden: [4], hidden: [5]}",
                "{format: csv, train: [train.csv], columns: {label: y}}\n"
                "  tables: [{name: wide, dim: 6}, {name: narrow, dim: 2}]\n"
                "  fields:\n    - {name: c, kind: categorical, table: wide}\n"
                "    - {name: t, kind: sequence, maxLength: 3, table: wide}\n"
                "    - {name: b, column: n, kind: numeric, table: narrow,\n"
                "       transform: {type: bucketise, bounds: [1, 2]}}");
  CheckPrintedAsTrained(user, "visits");
  WriteSmallJob(user, "spread", "{type: mmoe, experts: 2, expertHidden: [3]}",
                "{format: libffm, train: [train.libffm], maxBadLines: 1}\n"
                "  tables: [{name: wide, dim: 6}, {name: narrow, dim: 2}]\n"
                "  fields:\n    - {name: item, column: '2', kind: multiValued, table: wide}\n"
                "    - {name: '0', kind: multiValued, table: narrow}\n"
                "    - {name: '1', kind: multiValued, table: narrow}\n"
                "    - {name: '3', kind: multiValued, table: narrow}\n"
                "    - {name: '4', kind: multiValued, table: narrow}\n"
                "    - {name: '5', kind: multiValued, table: narrow}\n"
                "    - {name: '6', kind: multiValued, table: narrow}");
  CheckPrintedAsTrained(user, "spread");
}

TEST_CASE("what only data say is told to be known when they are indexed", "[strata]") {
  User user;
  WriteSmallData(user);
  WriteSmallJob(user, "ffm", "{type: deepfm, hidden: [5]}",
                "{format: libffm, train: [train.libffm, more.libffm], maxBadLines: 1}");
  const std::string gone =
      ": known when the data are indexed (" + user.Path("more.libffm") + " cannot be read here)\n";
  const ProgramResult deep = user.Strata("validate --schema -f ffm.yaml");
  CHECK(deep.exit_code == 0);
  CHECK(deep.out.find("\ntensor ") == std::string::npos);
  CHECK(deep.out.ends_with(
      "\nlabel label  binary  loss logloss  weight 1\ndense tensors and fields" + gone));
  const ProgramResult json = user.Strata("explain --schema ffm.yaml --json");
  CHECK(json.out.find("\"tensors\":[]") != std::string::npos);
  CHECK(json.err == "dense tensors and fields" + gone);
  // The tensors of lr and fm are the same, however many fields there are.
  const ProgramResult linear =
      user.Strata("validate --schema -f ffm.yaml --set 'spec.model={type: lr}'");
  CHECK(linear.out.find("\ntensor bias(1) ") != std::string::npos);
  CHECK(linear.out.ends_with("\nfields" + gone));
  // Data that are as large as that are not read for it.
  user.Write("more.libffm", "1 0:1:1\n");
  std::filesystem::resize_file(user.Path("more.libffm"), uint64_t{2} << 30);
  const ProgramResult large = user.Strata("validate -f ffm.yaml");
  INFO(large.err);
  CHECK(large.exit_code == 0);
  CHECK(
      large.err.find("\ndense tensors and fields: known when the data are indexed (spec.data.train "
                     "has 2147") != std::string::npos);
  CHECK(large.err.find(" bytes, and at most 1073741824 are read for this)\n") != std::string::npos);
  const ProgramResult piped = user.Strata(
      "validate --schema -f ffm.yaml --set \"spec.data.train=['-']\" --set spec.data.format=libfm");
  CHECK(piped.out.ends_with(
      "\ndense tensors: known when the data are indexed (standard input is read by the job "
      "alone)\n"));
}

TEST_CASE("data that a job cannot have are told before it trains", "[strata]") {
  User user;
  user.Write("train.libfm", "1 1:1\n0 2:1\n");
  WriteSmallJob(user, "pairs", "{type: dlrm, hidden: [5]}",
                "{format: libfm, train: [train.libfm]}");
  const std::string few =
      "spec.model.type dlrm needs data with numbers or with at least two fields; these have 1 and "
      "no numbers";
  CheckOneLine(user.Strata("validate -f pairs.yaml"), 2, {few});
  CheckOneLine(user.Strata("explain --schema pairs.yaml"), 2, {few});
  const std::string form =
      "input file " + user.Path("train.libfm") +
      ": no line has a label and a feature in libffm form (\"label field:index:value ...\"); is "
      "spec.data.format right?";
  CheckOneLine(user.Strata("validate -f pairs.yaml --set spec.data.format=libffm"), 2, {form});
  CHECK(user.Strata("validate --schema -f pairs.yaml --set spec.data.format=libffm")
            .out.ends_with("\ndense tensors and fields: known when the data are indexed (" + form +
                           ")\n"));
}

}  // namespace
}  // namespace strata

// Columns, labels, weights and files of a job that are not what it says, as a user meets them.
#include <signal.h>
#include <sys/types.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/bad_input/user.h"

namespace strata {
namespace {

// A user with a cluster, which the cases share.
User& UserWithCluster() {
  static User user;
  static const bool up = user.Up().exit_code == 0;
  REQUIRE(up);
  return user;
}

// A job over csv whose columns spec.fields says.
void WriteFieldsJob(const User& user, const std::string& field) {
  user.Write("fields.yaml",
             "apiVersion: strata/v1\nkind: TrainingJob\nmetadata: {name: job}\nspec:\n"
             "  data: {format: csv, train: [fields.csv], columns: {label: y}}\n"
             "  model: {type: lr}\n"
             "  training: {lanes: 4, batchSize: 8}\n"
             "  fields:\n    - {name: price, kind: numeric}\n    - " +
                 field + "\n");
}

TEST_CASE("columns that are not what spec.fields says are told by file, line and column",
          "[bad_input]") {
  User& user = UserWithCluster();
  const std::string good = "y,price,tags,item\n1,2.5,a:1|b,i1\n0,,b,i2\n";
  user.Write("fields.csv", good);
  user.Write("twice.txt", "i1\ni2\ni1\n");
  user.Write("values.txt", "i1\ni2\n");
  const std::string item = "{name: item, kind: categorical";
  const std::string tags = "{name: tags, kind: multiValued, weightSeparator: ':', pooling: mean}";
  const std::string skip = "set spec.data.maxBadLines to skip such lines";
  const struct {
    std::string field, text;
    std::vector<std::string> says;
  } cases[] = {
      {"{name: kind, kind: categorical}",
       good,
       {"fields.csv:1: spec.fields[1].column: \"kind\" is no column of the header",
        "which names \"y\", \"price\", \"tags\", \"item\"; name one of these"}},
      {item + "}",
       good + "0,dear,a,i1\n",
       {":4:3: column price: \"dear\" is not a finite number", skip}},
      {tags,
       good + "0,1,a:b,i1\n",
       {":4:5: column tags: the weight of \"a:b\" is not a finite", skip}},
      {tags, good + "0,1,a:0|b:0,i1\n", {":4:5: column tags: the weights have the sum 0", skip}},
      {tags,
       good + "0,1,a:1|b:-1,i1\n",
       {":4:5: column tags: the weight of \"b:-1\" is negative, and field tags divides", skip}},
      {item + ", vocabulary: {file: twice.txt}}",
       good,
       {"spec.fields[1].vocabulary.file: vocabulary file ", "twice.txt:3: \"i1\" is in line 1 too",
        "remove one of the two lines"}},
      {item + ", vocabulary: {file: none.txt}}",
       good,
       {"spec.fields[1].vocabulary.file: ", "none.txt does not exist"}},
  };
  int at = 0;
  for (const auto& [field, text, says] : cases) {
    INFO(field);
    WriteFieldsJob(user, field);
    user.Write("fields.csv", text);
    CheckRefused(user, "train -f fields.yaml", says);
    if (at++ % 3 == 0) CheckRefused(user, "submit --wait -f fields.yaml", says);
  }
  // Columns that are not there are told before a job begins.
  WriteFieldsJob(user, cases[0].field);
  user.Write("fields.csv", good);
  CheckOneLine(user.Strata("validate -f fields.yaml"), 2, cases[0].says);
  user.Write("other.csv", "y,price,kind\n1,2.5,k\n");
  const std::string held_out = "validate -f fields.yaml --set spec.data.train=other.csv ";
  CHECK(user.Strata(held_out).exit_code == 0);
  CheckOneLine(user.Strata(held_out + "--set spec.data.eval=fields.csv"), 2, cases[0].says);
  WriteFieldsJob(user, "{name: clicks, column: item, kind: sequence, maxLength: 3}");
  CheckSays(user.Strata("train -f fields.yaml"), 2,
            {"spec.fields[1].kind: field 'clicks' is a sequence, and model type lr reads none"});
  WriteFieldsJob(user, item + ", table: items}");
  CheckSays(user.Strata("train -f fields.yaml"), 2,
            {"spec.fields[1].table: 'items' of field 'item' is no table of the job"});
  WriteFieldsJob(user, item + ", vocabulary: {file: values.txt}}");
  CHECK(user.Strata("train -f fields.yaml").exit_code == 0);
}

// A job of one label and weights, its columns said by spec.fields or by data.columns.
void WriteLabelsJob(const User& user, const std::string& label, bool fields) {
  const std::string columns = fields ? "" : ", columns: {categorical: [item], ignored: ['*']}";
  user.Write("labels.yaml",
             "apiVersion: strata/v1\nkind: TrainingJob\nmetadata: {name: job}\nspec:\n"
             "  data: {format: csv, train: [labels.csv]" +
                 columns + "}\n" + (fields ? "  fields: [{name: item, kind: categorical}]\n" : "") +
                 "  model: {type: lr}\n  training: {lanes: 4, batchSize: 8}\n"
                 "  labels: [" +
                 label + "]\n  sampleWeight: w\n");
}

TEST_CASE("labels outside their kind and weights that are none are told by file, line and column",
          "[bad_input]") {
  User& user = UserWithCluster();
  const std::string good = "item,click,stars,visits,w\ni1,1,2.5,0,1\ni2,,,,\n";
  const std::string click = "{name: click}", stars = "{name: stars, kind: real}",
                    visits = "{name: visits, kind: count}";
  const std::string skip = "set spec.data.maxBadLines to skip such lines";
  const struct {
    std::string label, text;
    std::vector<std::string> says;
  } cases[] = {
      {click,
       good + "i1,2,,,\n",
       {"labels.csv:4:4: column click: label click: \"2\" is none of 0, 1, -1", skip}},
      {stars,
       good + "i1,,many,,\n",
       {"labels.csv:4:5: column stars: label stars: \"many\" is not a finite number", skip}},
      {stars, good + "i1,,nan,,\n", {":4:5: column stars: label stars: \"nan\" is not", skip}},
      {visits,
       good + "i1,,,1.5,\n",
       {":4:6: column visits: label visits: \"1.5\" is no count", "give the label kind real",
        skip}},
      {visits, good + "i1,,,-1,\n", {":4:6: column visits: label visits: \"-1\" is no count"}},
      {visits, good + "i1,,,16777217,\n", {"label visits: \"16777217\" is no count"}},
      {click,
       good + "i1,1,,,-0.5\n",
       {":4:8: column w: weight \"-0.5\" is negative; give 0 to leave the line out", skip}},
      {click, good + "i1,1,,,nan\n", {":4:8: column w: weight \"nan\" is not a finite number"}},
      {click, good + "i1,1,,,65537\n", {":4:8: column w: weight \"65537\" is above 65536; scale"}},
      {click,
       "item,click,w\ni1,1,0\ni2,0,0\n",
       {"labels.csv: column w gives no good line a weight above 0; mend it, or remove "
        "spec.sampleWeight"}},
      {click,
       good + "i1,1,,,1e-9\n",
       {":4:8: column w: weight \"1e-9\" is too small: in units of 2^-24 it would be 0; scale",
        skip}},
      {click,
       "item,click,w\ni1,1,65537\n",
       {"labels.csv: no line is good; the first bad one is ",
        "labels.csv:2:6: column w: weight \"65537\" is above 65536; scale"}},
      {click,
       "item,click,w\ni1,,1\ni2,,1\n",
       {"labels.csv: no good line of a weight above 0 has a label (column click); mend them"}},
      {click + ", " + stars,
       "item,click,stars,w\ni1,1,,1\ni2,0,,1\n",
       {"labels.csv: no good line of a weight above 0 has label stars (column stars)",
        "remove it from spec.labels"}},
      {click,
       good + "i1,0.99999999,,,\n",
       {":4:4: column click: label click: \"0.99999999\" is none"}},
      {"{name: buy}", good, {"labels.csv:1: spec.labels[0].column: \"buy\" is no column"}},
      {click, "item,click\ni1,1\n", {"labels.csv:1: spec.sampleWeight: \"w\" is no column"}},
  };
  int at = 0;
  for (const auto& [label, text, says] : cases) {
    for (const bool fields : {false, true}) {
      INFO(label << (fields ? " of fields: " : " of columns: ") << text);
      WriteLabelsJob(user, label, fields);
      user.Write("labels.csv", text);
      CheckRefused(user, "train -f labels.yaml", says);
      if (at++ % 5 == 0) CheckRefused(user, "submit --wait -f labels.yaml", says);
    }
  }
  WriteLabelsJob(user, click + ", " + stars + ", " + visits, true);
  user.Write("labels.csv", good);
  CHECK(user.Strata("train -f labels.yaml").exit_code == 0);
}

// A job whose parts are given as they stand in its file.
struct FileJob {
  std::string fields = "{name: item, kind: categorical, table: items}";
  std::string tables = "{name: items, dim: 4}";
  std::string model = "{type: fm, embeddingDim: 4}";
  std::string labels = "{name: click}";
  std::string more;  // of spec
  std::string train = "rows.csv";
};

void WriteFileJob(const User& user, const FileJob& job) {
  user.Write("rows.yaml",
             "apiVersion: strata/v1\nkind: TrainingJob\nmetadata: {name: job}\nspec:\n"
             "  data: {format: csv, train: [\"" +
                 job.train +
                 "\"]}\n"
                 "  training: {lanes: 4, batchSize: 8}\n"
                 "  model: " +
                 job.model + "\n  tables: [" + job.tables + "]\n  fields: [" + job.fields +
                 "]\n  labels: [" + job.labels + "]\n" + job.more);
}

// The list of what users do wrong. Each is told in one line: where it stands (file, line or row,
// and column, or the field of the job file), what it is, and what to do.
TEST_CASE("each kind of bad input is told in one line, with its place and its remedy",
          "[bad_input]") {
  User& user = UserWithCluster();
  const std::string good = "click,w,n,item,user,seen\n1,1,0.5,i1,u1,i1|i2\n0,,,i2,u2,i2\n";
  const std::string item = FileJob().fields;
  const std::string sequence =
      ", {name: seen, kind: sequence, maxLength: 2, truncate: never, table: items}";
  const std::string skip = "set spec.data.maxBadLines to skip such lines";
  const std::string weighted = "  sampleWeight: w\n";
  user.Write("twice.txt", "i1\ni2\ni1\n");
  const struct {
    std::string kind;
    FileJob job;
    std::string text;
    int exit_code;
    std::vector<std::string> says;
  } cases[] = {
      {"missing column",
       {.fields = item + ", {name: place, kind: categorical, table: items}"},
       good,
       1,
       {"rows.csv:1: spec.fields[1].column: \"place\" is no column of the header, which names ",
        "name one of these, or give the file that column"}},
      {"wrong type",
       {.fields = item + ", {name: n, kind: numeric}"},
       good + "1,1,dear,i1,u1,i1\n",
       1,
       {"rows.csv:4:5: column n: \"dear\" is not a finite number", skip}},
      {"tables that differ in width",
       {.fields = item + ", {name: user, kind: categorical, table: users}",
        .tables = "{name: items, dim: 4}, {name: users, dim: 2}"},
       good,
       2,
       {"rows.yaml:7:17: spec.model.type fm takes embeddings of one width",
        "items (dim 4: fields item), users (dim 2: fields user)", "give them one dim"}},
      {"unknown table",
       {.fields = item + ", {name: user, kind: categorical, table: people}"},
       good,
       2,
       {"rows.yaml:9:", "spec.fields[1].table: 'people' of field 'user' is no table of the job",
        "there are: items"}},
      {"label outside its kind",
       {},
       good + "2,1,0.5,i1,u1,i1\n",
       1,
       {"rows.csv:4:1: column click: label click: \"2\" is none of 0, 1, -1", skip}},
      {"negative weight",
       {.more = weighted},
       good + "1,-1,0.5,i1,u1,i1\n",
       1,
       {"rows.csv:4:3: column w: weight \"-1\" is negative; give 0 to leave the line out", skip}},
      {"NaN weight",
       {.more = weighted},
       good + "1,nan,0.5,i1,u1,i1\n",
       1,
       {"rows.csv:4:3: column w: weight \"nan\" is not a finite number; leave it empty", skip}},
      {"all weights 0",
       {.more = weighted},
       "click,w,item\n1,0,i1\n0,0,i2\n",
       1,
       {"rows.csv: column w gives no good line a weight above 0; mend it, or remove "
        "spec.sampleWeight"}},
      {"sequence beyond its length",
       {.fields = item + sequence, .model = "{type: din, hidden: [4], attentionHidden: [4]}"},
       good + "1,1,0.5,i1,u1,i1|i2|i3\n",
       1,
       {"rows.csv:4:15: column seen: ", "raise its maxLength, or set truncate", skip}},
      {"vocabulary file with duplicates",
       {.fields = "{name: item, kind: categorical, table: items, vocabulary: {file: twice.txt}}"},
       good,
       1,
       {"spec.fields[0].vocabulary.file: vocabulary file ", "twice.txt:3: \"i1\" is in line 1 too",
        "remove one of the two lines"}},
      {"glob that matches nothing",
       {.train = "day=*/rows.csv"},
       good,
       1,
       {"spec.data.train[0]: ", "day=*/rows.csv: the glob matches no file", "mend it, or wait"}},
  };
  for (const auto& c : cases) {
    INFO(c.kind);
    WriteFileJob(user, c.job);
    user.Write("rows.csv", c.text);
    CheckOneLine(user.Strata("train -f rows.yaml"), c.exit_code, c.says);
    if (c.exit_code == 2) CheckOneLine(user.Strata("submit --wait -f rows.yaml"), 2, c.says);
  }
  // Files that changed since the index: two, which are opened by turns. Good ones before.
  WriteFileJob(user, {.more = weighted, .train = "rows*.csv"});
  std::string many = good;
  for (int i = 0; i < 20000; ++i) many += "1,1,0.5,i1,u1,i1\n";
  user.Write("rows.csv", many);
  user.Write("rows-2.csv", many);
  CHECK(user.Strata("train -f rows.yaml").exit_code == 0);
  const ProgramResult changed =
      user.Interrupted("train -f rows.yaml --set spec.training.epochs=1000000",
                       "Training: ", [&](const User& u, pid_t) {
                         u.Write("new.csv", many + "1,1,0.5,i1,u1,i1\n");
                         std::filesystem::rename(u.Path("new.csv"), u.Path("rows.csv"));
                       });
  CheckOneLine(changed, 1,
               {"input file " + user.Path("rows.csv") + " has changed since the job began",
                "restore it, or submit a new job"});
}

TEST_CASE("files that change, go or come while their job trains", "[bad_input]") {
  User user;
  user.Up();
  user.WriteJob();
  const std::string lines = GoodLines(20000);
  std::string changed = lines;
  changed[0] = changed[0] == '1' ? '0' : '1';
  const std::string job =
      " -f job.yaml --set spec.data.train=[day=*/part-*] --set spec.training.epochs=";
  const auto begin = [&] {
    REQUIRE(
        std::system(("rm -rf '" + user.Path("day=1") + "' && mkdir '" + user.Path("day=1") + "'")
                        .c_str()) == 0);
    user.Write("day=1/part-0", lines);
    user.Write("day=1/part-1", lines);
  };
  // As many bytes as before, and lines as long.
  begin();
  const ProgramResult other =
      user.Interrupted("submit --wait" + job + "100000", "Training: ", [&](const User& u, pid_t) {
        u.Write("new", changed);
        std::filesystem::rename(u.Path("new"), u.Path("day=1/part-1"));
      });
  INFO(other.out << other.err);
  CHECK(other.exit_code == 1);
  CHECK(WhatIsWrongWith(FailureOf(other), {"input file " + user.Path("day=1/part-1") +
                                               " has changed since the job began",
                                           "restore it, or submit a new job"}) == "");
  begin();
  const ProgramResult gone = user.Interrupted(
      "submit --wait" + job + "100000",
      "Training: ", [](const User& u, pid_t) { std::filesystem::remove(u.Path("day=1/part-0")); });
  INFO(gone.out << gone.err);
  CHECK(gone.exit_code == 1);
  CHECK(WhatIsWrongWith(FailureOf(gone), {user.Path("day=1/part-0") + " does not exist"}) == "");
  // Which files there are was settled when the job began, whoever dies.
  begin();
  const ProgramResult alone = user.Strata("train --json" + job + "3");
  const ProgramResult more =
      user.Interrupted("submit --wait --json" + job + "3", "Training: ", [&](const User& u, pid_t) {
        u.Write("day=1/part-2", lines);
        for (const char* name : {"scheduler", "worker-0"}) kill(u.PidOf(name), SIGKILL);
      });
  INFO(more.out << more.err);
  CHECK(more.exit_code == 0);
  const auto of = [](const std::string& json, const std::string& key, size_t size) {
    const size_t at = json.find('"' + key + '"');
    return at == std::string::npos ? json : json.substr(at, size);
  };
  CHECK(of(more.out, "modelHash", 46) == of(alone.out, "modelHash", 46));
  CHECK(of(more.out, "trainInput", 24) == "\"trainInput\":{\"files\":2,");
}

}  // namespace
}  // namespace strata

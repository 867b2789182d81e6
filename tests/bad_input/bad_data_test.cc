// Bad data as a user meets it: the same file given to `train` and to `submit --wait` on a cluster.
// Each error names the file, the line and column where there is one, the value, and what to do.
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/bad_input/user.h"
#include "tests/skip.h"
#include "tests/worker/data/files/compressed.h"

namespace strata {
namespace {

// One file that cannot be trained on.
struct BadFile {
  const char* name;
  std::string format;
  std::string text;
  std::vector<std::string> says;  // beside the file's path
};

// A line of criteo with this label.
std::string Criteo(const std::string& label) {
  std::string line = label;
  for (int i = 0; i < 13; ++i) line += "\t" + std::to_string(i);
  for (int i = 0; i < 26; ++i) line += "\tc" + std::to_string(i);
  return line + "\n";
}

std::vector<BadFile> BadFiles() {
  const std::string good = GoodLines(20);
  const std::string skip = "set spec.data.maxBadLines to skip such lines";
  return {
      {"empty", "libfm", "", {" is empty", "write data to it"}},
      {"nan label",
       "libfm",
       good + "nan 1:1\n",
       {":21:1: label \"nan\" is none of 0, 1, -1", skip}},
      {"infinite label", "libfm", good + "inf 1:1\n", {":21:1: label \"inf\"", skip}},
      {"label 2", "libfm", good + "2 1:1\n", {":21:1: label \"2\" is none of 0, 1, -1", skip}},
      {"label .5", "libsvm", good + "0.5 1:1\n", {":21:1: label \"0.5\"", skip}},
      {"no label", "libfm", good + "1:1 2:1\n", {":21:1: label \"1:1\"", skip}},
      {"nan label of criteo", "criteo", Criteo("1") + Criteo("nan"), {":2:1: label \"nan\"", skip}},
      {"negative id", "libfm", good + "1 3:1 -5:1\n", {":21:7: feature index \"-5\" is negative"}},
      {"overflowing id",
       "libfm",
       good + "1 18446744073709551616:1\n",
       {":21:3: feature index \"18446744073709551616\" is over 18446744073709551615"}},
      {"nan value",
       "libfm",
       good + "1 3:nan\n",
       {":21:3: feature value \"nan\" is not a finite number", skip}},
      {"another format", "criteo", good, {":1: found 1 columns", "criteo has 40", skip}},
      {"another format still",
       "libfm",
       Criteo("1"),
       {"no line has a label and a feature in libfm form", "is spec.data.format right?"}},
      {"negative field",
       "libffm",
       "1 0:1:1\n1 0:1:1 -1:2:1\n",
       {":2:9: field \"-1\" is negative", skip}},
      {"overflowing field",
       "libffm",
       "1 0:1:1\n1 4294967296:2:1\n",
       {":2:3: field 4294967296 is over 0, the highest of the train files", skip}},
      {"libfm as libffm",
       "libffm",
       good,
       {"no line has a label and a feature in libffm form", "is spec.data.format right?"}},
      {"criteo_csv without a header",
       "criteo_csv",
       "0,1,2\n",
       {"the header of criteo_csv: column 1, \"0\", is unknown", "Label, I1 to I13, C1 to C26"}},
      {"bad line in gzip",
       "libfm",
       Gzip(good + "1 3:1 -5:1\n"),
       {":21:7: feature index \"-5\" is negative", skip}},
      {"bad line in zstd", "libfm", Zstd(good + "nan 1:1\n"), {":21:1: label \"nan\"", skip}},
      {"gzip cut off",
       "libfm",
       Gzip(good).substr(0, 40),
       {" is cut off: it ends at byte 40 within a gzip member", "fetch or compress it again"}},
      {"zstd cut off",
       "libfm",
       Zstd(good).substr(0, 40),
       {" is cut off: it ends at byte 40 within a zstd frame", "fetch or compress it again"}},
      {"gzip of nothing", "libfm", Gzip(""), {" is empty", "write data to it"}},
      {"gzip and noise",
       "libfm",
       Gzip(good) + "noise",
       {" is damaged at byte ", "incorrect header check (gzip)"}},
      {"zero bytes", "libfm", good + std::string("1 3\0:1\n", 7), {":21:4: a NUL byte", skip}},
      {"noise", "libfm", good + "\xff\xfe\x00\x01\n", {":21:1: ", skip}},
  };
}

// The error's line in what the command said, of the form "job job failed: ...".
std::string FailureOf(const ProgramResult& result) {
  const std::string start = "job job failed: ";
  const size_t at = result.out.find(start);
  if (at == std::string::npos) return "";
  return result.out.substr(at, result.out.find('\n', at) - at);
}

void CheckRefused(const User& user, const std::string& command, std::vector<std::string> says) {
  const ProgramResult r = user.Strata(command);
  INFO(command << "\n" << r.out << r.err);
  CHECK(r.exit_code == 1);
  CHECK(WhatIsWrongWith(FailureOf(r), says) == "");
  CHECK(WhatIsWrongWith(r.err, {}) == "");
}

// A user with a cluster, which the cases share.
User& UserWithCluster() {
  static User user;
  static const bool up = user.Up().exit_code == 0;
  REQUIRE(up);
  return user;
}

// What a worker says of a file does not depend on who started it: each is trained on embedded, and
// by default every fourth on a cluster as well.
TEST_CASE("bad data is told by file, line, column and value, embedded and on a cluster",
          "[bad_input]") {
  User& user = UserWithCluster();
  user.WriteJob();
  int files = 0;
  for (const BadFile& bad : BadFiles()) {
    INFO(bad.name);
    user.Write("bad.data", bad.text);
    std::vector<std::string> says = bad.says;
    says.push_back(user.Path("bad.data"));
    const std::string job =
        " -f job.yaml --set spec.data.train=[bad.data] --set spec.data.format=" + bad.format;
    CheckRefused(user, "train" + job, says);
    if (files++ % 4 == 0 || LongRun()) CheckRefused(user, "submit --wait" + job, says);
  }
  // The cluster that saw all this still trains.
  user.Write("train.libfm", GoodLines(100));
  CHECK(user.Strata("submit --wait -f job.yaml").exit_code == 0);
}

TEST_CASE("standard input is read by train and predict, and refused by submit", "[bad_input]") {
  User& user = UserWithCluster();
  user.WriteJob();
  user.Write("good", GoodLines(50));
  user.Write("train.libfm", GoodLines(50));
  const std::string from_stdin = " --set spec.data.train=- < good";
  const std::string checkpoint = " --set spec.checkpoint.directory=checkpoints";
  const ProgramResult piped = user.Strata("train -f job.yaml" + checkpoint + from_stdin);
  INFO(piped.out << piped.err);
  CHECK(piped.exit_code == 0);
  const ProgramResult file = user.Strata("train -f job.yaml");
  const auto hash = [](const ProgramResult& r) { return r.out.substr(r.out.find("model hash")); };
  REQUIRE(file.out.find("model hash") != std::string::npos);
  CHECK(hash(piped) == hash(file));
  const ProgramResult scored = user.Strata("predict --checkpoint checkpoints - < good");
  CHECK(scored.exit_code == 0);
  CHECK(std::count(scored.out.begin(), scored.out.end(), '\n') >= 50);
  const ProgramResult refused = user.Strata("submit -f job.yaml" + from_stdin);
  CHECK(refused.exit_code == 2);
  CHECK(WhatIsWrongWith(refused.err, {"'-' is standard input", "`strata train`"}) == "");
  const ProgramResult both = user.Strata("train -f - --set spec.data.train=- < job.yaml");
  CHECK(both.exit_code == 2);
  CHECK(WhatIsWrongWith(both.err, {"standard input, which already holds the job file"}) == "");
  user.Write("good", GoodLines(20) + "2 1:1\n");
  const ProgramResult bad = user.Strata("train -f job.yaml" + from_stdin);
  CHECK(bad.exit_code == 1);
  CHECK(WhatIsWrongWith(FailureOf(bad), {"standard input:21:1: label \"2\""}) == "");
}

TEST_CASE("what is no readable file is told by name", "[bad_input]") {
  User& user = UserWithCluster();
  user.WriteJob();
  REQUIRE(std::system(("mkfifo '" + user.Path("pipe") + "'").c_str()) == 0);
  REQUIRE(std::system(("mkdir '" + user.Path("hollow") + "'").c_str()) == 0);
  user.Write("hollow/_SUCCESS", "");
  user.Write("hollow/.part-0.crc", "x");
  const struct {
    const char* path;
    const char* says;
  } kPlaces[] = {
      {"none.libfm", "none.libfm does not exist; check spec.data"},
      {"job.yaml/x", "job.yaml/x"},
      {"pipe", "pipe is not a regular file; write the data to one"},
      {"hollow", "hollow: the folder has no file (names that begin with . or _ do not count)"},
      {"hollow/day=*", "hollow/day=*: the glob matches no file; mend it, or wait for the files"},
      {"/dev/zero", "/dev/zero is not a regular file"},
      {"/proc/self/mem", "/proc/self/mem is empty"},  // cannot be read, but has no size either
  };
  for (const auto& place : kPlaces) {
    for (const char* command : {"train", "submit --wait"}) {
      CheckRefused(user,
                   std::string(command) + " -f job.yaml --set spec.data.train=[" + place.path + "]",
                   {place.says});
    }
  }
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
       {"fields.csv: spec.fields[1].column: \"kind\" is no column of the header",
        "the header names y, price, tags, item"}},
      {item + "}",
       good + "0,dear,a,i1\n",
       {":4:3: column price: \"dear\" is not a finite number", skip}},
      {tags,
       good + "0,1,a:b,i1\n",
       {":4:5: column tags: the weight of \"a:b\" is not a finite", skip}},
      {tags, good + "0,1,a:1|b:-1,i1\n", {":4:5: column tags: the weights have the sum 0", skip}},
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
  user.Write("fields.csv", good);
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
      {"{name: buy}", good, {"labels.csv: spec.labels[0].column: \"buy\" is no column"}},
      {click, "item,click\ni1,1\n", {"labels.csv: spec.sampleWeight: \"w\" is no column"}},
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

TEST_CASE("a file that may not be read is told by name", "[bad_input]") {
  User user;
  user.Write("train.libfm", GoodLines(50));
  user.WriteJob();
  REQUIRE(chmod(user.Path("train.libfm").c_str(), 0) == 0);
  const auto r = user.StrataWithoutPrivileges("train -f job.yaml");
  if (!r) STRATA_SKIP("root that cannot give up its rights may read every file");
  CHECK(r->exit_code == 1);
  CHECK(WhatIsWrongWith(FailureOf(*r), {"input file " + user.Path("train.libfm") +
                                        " may not be read; check its permissions"}) == "");
}

TEST_CASE("a line of 100 MB is refused with its number and the limit", "[bad_input]") {
  User& user = UserWithCluster();
  user.WriteJob();
  {
    std::ofstream out(user.Path("long.libfm"), std::ios::binary);
    out << GoodLines(20) << "1 ";
    const std::string million(1000000, '7');
    for (int i = 0; i < 100; ++i) out << million;
    out << ":1\n";
  }
  for (const char* command : {"train", "submit --wait"}) {
    CheckRefused(user, std::string(command) + " -f job.yaml --set spec.data.train=[long.libfm]",
                 {user.Path("long.libfm") + ":21: the line is longer than the limit of 16777216"});
  }
}

TEST_CASE("bad lines within maxBadLines are skipped and counted", "[bad_input]") {
  User user;
  user.WriteJob();
  user.Write("train.libfm", GoodLines(50) + "2 1:1\nnan 1:1\n1 -1:1\n");
  const ProgramResult r = user.Strata("train -f job.yaml --json --set spec.data.maxBadLines=3");
  INFO(r.out << r.err);
  CHECK(r.exit_code == 0);
  CHECK(r.out.find("\"examples\":50,") != std::string::npos);
  CHECK(r.out.find("\"badLines\":3,") != std::string::npos);
  CHECK(user.Strata("train -f job.yaml --set spec.data.maxBadLines=2").exit_code == 1);
}

TEST_CASE("CRLF line ends and a missing last line end change nothing", "[bad_input]") {
  User user;
  user.WriteJob();
  std::string lines = GoodLines(50), crlf;
  user.Write("train.libfm", lines);
  lines.pop_back();
  for (const char c : lines) crlf += c == '\n' ? "\r\n" : std::string(1, c);
  user.Write("crlf.libfm", crlf);
  const auto hash = [](const ProgramResult& r) {
    const size_t at = r.out.find("model hash");
    return at == std::string::npos ? r.err : r.out.substr(at);
  };
  const ProgramResult unix_ends = user.Strata("train -f job.yaml");
  CHECK(unix_ends.exit_code == 0);
  CHECK(hash(user.Strata("train -f job.yaml --set spec.data.train=[crlf.libfm]")) ==
        hash(unix_ends));
}

}  // namespace
}  // namespace strata

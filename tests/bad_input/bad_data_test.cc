// Bad data as a user meets it: the same file given to `train` and to `submit --wait` on a cluster.
// Each error names the file, the line and column where there is one, the value, and what to do.
#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
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
  CHECK(r.err.find("LinesAreBad: worker-0: the first bad line is " + user.Path("train.libfm") +
                   ":5") != std::string::npos);
  CheckRefused(user, "train -f job.yaml --set spec.data.maxBadLines=2",
               {"3 bad lines; spec.data.maxBadLines is 2; the first bad line is " +
                    user.Path("train.libfm") + ":5",
                "mend such lines, or raise the limit"});
}

TEST_CASE("held-out lines are looked at before training, by the same limit", "[bad_input]") {
  User user;
  user.WriteJob();
  user.Write("train.libfm", GoodLines(50));
  user.Write("eval.libfm", GoodLines(20) + "2 1:1\nnan 1:1\n");
  const std::string job = "train -f job.yaml --set spec.data.eval=[eval.libfm]";
  const std::string first = user.Path("eval.libfm") + ":21:1: label \"2\"";
  CheckRefused(user, job, {first, "set spec.data.maxBadLines to skip such lines"});
  CheckRefused(user, job + " --set spec.data.maxBadLines=1",
               {"spec.data.eval: more than 1 bad lines; the first is " + first,
                "raise spec.data.maxBadLines"});
  CHECK(user.Strata(job).err.find(" Training: ") == std::string::npos);
  const ProgramResult r = user.Strata(job + " --json --set spec.data.maxBadLines=2");
  INFO(r.out << r.err);
  CHECK(r.exit_code == 0);
  CHECK(r.out.find("\"evaluatedExamples\":20,") != std::string::npos);
  CHECK(r.err.find(" Training: ") != std::string::npos);
  CHECK(r.err.find("HeldOutLinesAreBad: worker-0: 2 bad lines of spec.data.eval are left out of "
                   "each evaluation; the first is " +
                   first) != std::string::npos);
}

TEST_CASE("patience that has no AUC to go by is refused, and without it the text says why",
          "[bad_input]") {
  User user;
  user.WriteJob("  evaluation: {everySteps: 1}\n");
  user.Write("train.libfm", GoodLines(50));
  user.Write("eval.libfm", "1 1:1\n1 2:1\n");
  const std::string job = "train -f job.yaml --set spec.data.eval=[eval.libfm]";
  CheckRefused(user, job + " --set spec.evaluation.patience=2",
               {"spec.evaluation.patience: it goes by the AUC of label ", "all 2 labels are 1",
                "give held-out lines of both classes, or remove patience"});
  const ProgramResult r = user.Strata(job + " --set spec.checkpoint.directory=ck");
  INFO(r.out << r.err);
  CHECK(r.exit_code == 0);
  CHECK(r.out.find("AUC is not defined (all 2 labels are 1), logloss") != std::string::npos);
  const ProgramResult scored =
      user.Strata("predict --checkpoint ck eval.libfm --output scores.csv");
  INFO(scored.out << scored.err);
  CHECK(scored.exit_code == 0);
  CHECK(scored.err.find("AUC is not defined (all 2 labels are 1), logloss") != std::string::npos);
  CHECK(user.Strata("predict --checkpoint ck eval.libfm --output scores.csv --json")
            .out.find("\"auc\":null,") != std::string::npos);
}

TEST_CASE("a file that is trained and evaluated on is warned of, by whatever name", "[bad_input]") {
  User user;
  user.WriteJob();
  user.Write("train.libfm", GoodLines(50));
  REQUIRE(std::system(("ln -s train.libfm '" + user.Path("link.libfm") + "'").c_str()) == 0);
  const ProgramResult r = user.Strata("train -f job.yaml --set spec.data.eval=[link.libfm]");
  CHECK(r.exit_code == 0);
  CHECK(r.err.find("spec.data.eval: " + user.Path("link.libfm") + " seems to have the content of " +
                   user.Path("train.libfm") + " of spec.data.train") != std::string::npos);
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

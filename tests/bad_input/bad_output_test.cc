// Outputs of programs that cannot be written, or that are links, as a user meets them.
#include <sys/wait.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/bad_input/user.h"

namespace strata {
namespace {

TEST_CASE("output that cannot be written is an error, not a success", "[bad_input]") {
  User user;
  user.Write("train.libfm", GoodLines(50));
  user.WriteJob();
  // The redirection comes after the one to the file `out`: the last one counts.
  const auto to_full = [&](const std::string& command) {
    const std::string line = "cd '" + user.folder() + "' && HOME='" + user.folder() + "' '" +
                             ProgramPath("tools/cli/strata") + "' " + command +
                             " >/dev/full 2>err </dev/null";
    const int status = std::system(line.c_str());
    return ProgramResult{WEXITSTATUS(status), "", user.Read("err")};
  };
  for (const char* command :
       {"version", "validate -f job.yaml --json", "train -f job.yaml --json"}) {
    CheckSays(to_full(command), 1, {"standard output", "No space left on device"});
  }
  REQUIRE(user.Strata("train -f job.yaml --set spec.checkpoint.directory=c").exit_code == 0);
  CheckSays(to_full("predict --checkpoint c train.libfm"), 1,
            {"standard output", "No space left on device"});
}

TEST_CASE("scores go where the shell or a link leads, and replace no link", "[bad_input]") {
  User user;
  user.Write("train.libfm", GoodLines(50));
  user.WriteJob();
  REQUIRE(user.Strata("train -f job.yaml --set spec.checkpoint.directory=c").exit_code == 0);
  const std::string predict = "predict --checkpoint c train.libfm";
  const std::string scores = user.Strata(predict).out;
  REQUIRE(std::count(scores.begin(), scores.end(), '\n') == 50);
  const auto is_link = [&](const char* name) {
    return std::filesystem::is_symlink(user.Path(name));
  };
  // As /dev/stdout, which is the machine's.
  std::filesystem::create_symlink("/proc/self/fd/1", user.Path("stdout"));
  const ProgramResult to_file = user.Strata(predict + " -o stdout");
  CHECK(to_file.exit_code == 0);
  CHECK(to_file.out == scores);
  CHECK(is_link("stdout"));
  const ProgramResult with_json = user.Strata(predict + " -o stdout --json");
  CHECK(with_json.exit_code == 0);
  CHECK(with_json.out == scores);
  CHECK(with_json.err.find("\"logloss\"") != std::string::npos);
  // What the shell had there stays, and what comes after does not write over it.
  const std::string strata = "HOME='" + user.folder() + "' '" + ProgramPath("tools/cli/strata") +
                             "' " + predict + " -o stdout 2>err </dev/null";
  for (const char* redirect : {">>all", "1<>all"}) {
    user.Write("all", "before\n");
    const std::string shell =
        "cd '" + user.folder() + "' && { " + strata + "; echo after; } " + redirect;
    REQUIRE(std::system(shell.c_str()) == 0);
    CHECK(user.Read("all") == (redirect[0] == '>' ? "before\n" : "") + scores + "after\n");
    CHECK(is_link("stdout"));
  }
  // Any other link: what it leads to is replaced, also what is not there yet.
  std::filesystem::create_directory(user.Path("elsewhere"));
  user.Write("elsewhere/old", "old\n");
  std::filesystem::create_symlink("elsewhere/old", user.Path("old"));
  std::filesystem::create_symlink(user.Path("elsewhere/new"), user.Path("new"));
  for (const std::string name : {"old", "new"}) {
    CHECK(user.Strata(predict + " -o " + name).exit_code == 0);
    CHECK(is_link(name.c_str()));
    CHECK(user.Read("elsewhere/" + name) == scores);
  }
  std::filesystem::create_symlink("../train.libfm.tmp", user.Path("elsewhere/in"));
  user.Write("train.libfm.tmp", GoodLines(50));
  CheckSays(user.Strata("predict --checkpoint c train.libfm.tmp -o elsewhere/in"), 2,
            {"--output ", "is the same file as train.libfm.tmp"});
  std::filesystem::create_symlink("circle", user.Path("circle"));
  CheckSays(user.Strata(predict + " -o circle"), 2, {"circle", "Too many levels"});
  CHECK(is_link("circle"));
}

TEST_CASE("outputs are written among no files that are read", "[bad_input]") {
  User user;
  std::filesystem::create_directory(user.Path("data"));
  std::filesystem::create_directory_symlink("data", user.Path("link"));
  for (const char* day : {"data/day1.libfm", "data/day2.libfm"}) user.Write(day, GoodLines(50));
  user.Write("train.libfm", GoodLines(50));
  user.WriteJob();
  REQUIRE(user.Strata("train -f job.yaml --set spec.checkpoint.directory=c").exit_code == 0);
  const std::string predict = "predict --checkpoint c ";
  for (const std::string inputs : {"data", "'data/*'", "'da*'", "data/day1.libfm 'data/d*2*'"}) {
    INFO(inputs);
    CheckOneLine(user.Strata(predict + inputs + " -o data/day2.libfm"), 2,
                 {"--output data/day2.libfm would be one of the files that inputs[", "another"});
    CheckOneLine(user.Strata(predict + inputs + " -o link/day2.libfm"), 2, {"--output link/day2"});
  }
  CHECK(user.Read("data/day2.libfm") == GoodLines(50));
  // Nor is what would be among them the next time, under its name or the one on its way.
  for (const std::string inputs : {"data", "'data/*'"}) {
    CheckOneLine(user.Strata(predict + inputs + " -o data/scores.csv"), 2,
                 {"--output data/scores.csv would be one of the files that inputs[0], data"});
  }
  CheckOneLine(user.Strata(predict + "'data/*.tmp' -o data/scores"), 2,
               {"--output data/scores.tmp would be one of the files that inputs[0], data/*.tmp"});
  CHECK_FALSE(std::filesystem::exists(user.Path("data/scores.csv")));
  for (const std::string output : {"scores.csv", "data/_scores.csv"}) {
    CHECK(user.Strata(predict + "data -o " + output).exit_code == 0);
  }
  CHECK(user.Strata(predict + "'data/*.libfm' -o data/scores.csv").exit_code == 0);
  CHECK(user.Read("data/scores.csv") == user.Read("scores.csv"));
  // So it is with what a job writes.
  std::filesystem::remove(user.Path("data/scores.csv"));
  const std::string job = " -f job.yaml --set spec.data.train=[data]";
  for (const auto& [set, says] :
       {std::pair{" --set spec.output.metrics=data/m.jsonl", "data/m.jsonl would be one of the "},
        std::pair{" --set 'spec.data.eval=[data/*.libfm]' --set spec.output.predictions=link/p",
                  "link/p would be one of the files that spec.data.train[0], "}}) {
    CheckRefused(user, "train" + job + set, {says, "write to another folder"});
    CheckSays(user.Strata("validate" + job + set), 2, {says, "write to another folder"});
  }
  CHECK_FALSE(std::filesystem::exists(user.Path("data/m.jsonl")));
}

TEST_CASE("scores are written over no vocabulary", "[bad_input]") {
  const User user;
  const std::string words = "u0\nu1\nu2\n";
  std::string rows = "u,click\n";
  for (int i = 0; i < 40; ++i) {
    rows += "u" + std::to_string(i % 5) + "," + std::to_string(i % 2) + "\n";
  }
  user.Write("rows.csv", rows);
  for (const char* file : {"words", "elsewhere"}) user.Write(file, words);
  user.Write("job.yaml",
             "apiVersion: strata/v1\nkind: TrainingJob\nmetadata: {name: job}\nspec:\n"
             "  data: {format: csv, train: [rows.csv], columns: {label: click}}\n"
             "  fields: [{name: u, kind: categorical, vocabulary: {file: words}}]\n"
             "  model: {type: lr}\n  training: {lanes: 2, batchSize: 8}\n");
  REQUIRE(user.Strata("train -f job.yaml --set spec.checkpoint.directory=c").exit_code == 0);
  const std::string predict = "predict --checkpoint c rows.csv ";
  std::filesystem::create_symlink("words", user.Path("link"));
  for (const std::string output : {"words", "link", "./words"}) {
    CheckOneLine(user.Strata(predict + "-o " + output), 2, {"is the same file as", "words"});
  }
  CheckOneLine(user.Strata(predict + "--vocabulary u=elsewhere -o elsewhere"), 2,
               {"--output elsewhere is the same file as elsewhere, which is read"});
  CHECK(user.Read("words") == words);
  CHECK(user.Read("elsewhere") == words);
  CHECK(user.Strata(predict + "--vocabulary u=elsewhere -o words").exit_code == 0);
}

TEST_CASE("made rows go to a device, a pipe or stdout as scores do, and replace none of them",
          "[bad_input][generate]") {
  const User user;
  std::filesystem::create_symlink("/proc/self/fd/1", user.Path("stdout"));
  REQUIRE(std::system(("mkfifo '" + user.Path("pipe") + "'").c_str()) == 0);
  for (const std::string kind : {"criteo", "movielens"}) {
    INFO(kind);
    const std::string generate = "generate " + kind + " --rows 10 -o ";
    REQUIRE(user.Strata(generate + "file").exit_code == 0);
    const std::string rows = user.Read("file");
    for (const char* name : {"-", "stdout"}) {
      const ProgramResult r = user.Strata(generate + name);
      CHECK(r.exit_code == 0);
      CHECK(r.out == rows);
      CHECK(r.err.find("10 rows") != std::string::npos);
    }
    CHECK(std::filesystem::is_symlink(user.Path("stdout")));
    CHECK_FALSE(std::filesystem::exists(user.Path("-")));
    const std::string shell = "cd '" + user.folder() + "' && cat pipe >got & cd '" + user.folder() +
                              "' && '" + ProgramPath("tools/cli/strata") + "' " + generate +
                              "pipe 2>/dev/null && wait";
    REQUIRE(std::system(shell.c_str()) == 0);
    CHECK(user.Read("got") == rows);
    CHECK(std::filesystem::is_fifo(user.Path("pipe")));
    // As /dev/full, which is the machine's.
    std::filesystem::create_symlink("/dev/full", user.Path("full" + kind));
    CheckSays(user.Strata(generate + "full" + kind), 1, {"/dev/full", "No space left on device"});
    CHECK(std::filesystem::is_symlink(user.Path("full" + kind)));
  }
  CHECK_FALSE(std::filesystem::exists(user.Path("_pipe.teacher.json")));
}

TEST_CASE("an output that is a folder, in none, or without a name is refused before the work",
          "[bad_input]") {
  User user;
  user.Write("train.libfm", GoodLines(50));
  user.WriteJob();
  REQUIRE(user.Strata("train -f job.yaml --set spec.checkpoint.directory=c").exit_code == 0);
  std::filesystem::create_directory(user.Path("dir"));
  for (const std::string& command : {std::string("generate criteo --rows 1000000000000"),
                                     std::string("generate movielens --rows 1000000000000"),
                                     // Nothing is scored: the line would be bad.
                                     std::string("predict --checkpoint c job.yaml")}) {
    INFO(command);
    CheckOneLine(user.Strata(command + " -o dir"), 2, {" dir is a folder; name a file in it"});
    CheckOneLine(user.Strata(command + " -o none/x"), 2,
                 {" none/x: there is no folder " + user.Path("none") + "; make it"});
    CheckOneLine(user.Strata(command + " -o new/"), 2, {" new/ is a folder; name a file in it"});
    CheckOneLine(user.Strata(command + " -o ''"), 2, {" has no name; name a file"});
  }
  CHECK(std::filesystem::is_empty(user.Path("dir")));
}

TEST_CASE("a header names no column twice, and a label is written as it was read", "[bad_input]") {
  const User user;
  std::string rows = "u,click,click_score\n";
  for (int i = 0; i < 40; ++i) {
    rows += "u" + std::to_string(i % 5) + "," + std::to_string(i % 2) + ",3.51\n";
  }
  user.Write("rows.csv", rows);
  user.Write("job.yaml",
             "apiVersion: strata/v1\nkind: TrainingJob\nmetadata: {name: job}\nspec:\n"
             "  data: {format: csv, train: [rows.csv]}\n"
             "  fields: [{name: u, kind: categorical}]\n"
             "  labels: [{name: click}, {name: click_score, kind: real}]\n"
             "  model: {type: lr}\n  training: {lanes: 2, batchSize: 8}\n");
  REQUIRE(user.Strata("train -f job.yaml --set spec.checkpoint.directory=c").exit_code == 0);
  const std::string predict = "predict --checkpoint c rows.csv";
  CheckOneLine(user.Strata(predict + " --header"), 2,
               {"--header would name click_score twice", "add --scores-only"});
  const ProgramResult scores = user.Strata(predict + " --header --scores-only");
  CHECK(scores.exit_code == 0);
  CHECK(scores.out.find("click_score,click_score_score\n") == 0);
  CHECK(user.Strata(predict).out.find("0,3.51,") == 0);
}

}  // namespace
}  // namespace strata

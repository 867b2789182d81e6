// The completion scripts in real shells.
#include "tools/cli/describe/completion.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tests/skip.h"
#include "tests/temp_folder.h"
#include "tools/cli/describe/command_help.h"
#include "tools/cli/describe/commands.h"
#include "tools/cli/describe/job_schema.h"

namespace strata {
namespace {

using Words = std::vector<std::string>;

const std::string& Folder() {
  static const TempFolder folder;
  static const bool filled = [] {
    const std::string& name = folder.path();
    REQUIRE(mkdir((name + "/data files").c_str(), 0755) == 0);
    std::ofstream(name + "/job one.yaml") << "x";
    std::ofstream(name + "/job2.yaml") << "x";
    // What lists the jobs.
    std::ofstream(name + "/strata") << "#!/bin/sh\n"
                                       "[ \"$1 $2\" = 'list --json' ] || exit 9\n"
                                       "echo '[{\"job\":1,\"name\":\"clicks\"},"
                                       "{\"job\":2,\"name\":\"ctr-2\"}]'\n";
    REQUIRE(chmod((name + "/strata").c_str(), 0755) == 0);
    return true;
  }();
  REQUIRE(filled);
  return folder.path();
}

std::string Script(const std::string& shell) {
  const CommandHelp root = DescribeCommands();
  const std::string text = shell == "bash"  ? BashCompletion(root, AllPaths())
                           : shell == "zsh" ? ZshCompletion(root, AllPaths())
                                            : FishCompletion(root, AllPaths());
  const std::string path = Folder() + "/completion." + shell;
  std::ofstream(path) << text;
  return path;
}

struct Output {
  int exit_code = -1;
  Words lines;  // of stdout and stderr
};

Output Run(const std::string& command) {
  std::FILE* pipe = popen(absl::StrCat("cd '", Folder(), "' && ", command, " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  char buffer[4096];
  while (const size_t n = std::fread(buffer, 1, sizeof(buffer), pipe)) text.append(buffer, n);
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 1000,
          absl::StrSplit(text, '\n', absl::SkipEmpty())};
}

bool Installed(const std::string& program) {
  return std::system(("command -v " + program + " >/dev/null").c_str()) == 0;
}

// What bash offers after `words`, of which the last is being typed.
Words Bash(Words words) {
  words.insert(words.begin(), "./strata");
  for (std::string& word : words) word = ShellQuote(word);
  static const std::string script = Script("bash");
  const std::string code =
      absl::StrCat("source ", script, "; COMP_WORDS=(", absl::StrJoin(words, " "),
                   "); COMP_CWORD=", words.size() - 1,
                   "; _strata; for w in \"${COMPREPLY[@]}\"; do echo \"$w\"; done");
  const Output output = Run("bash --norc -c " + ShellQuote(code));
  CHECK(output.exit_code == 0);
  return output.lines;
}

bool Has(const Words& words, const std::string& word) {
  return std::count(words.begin(), words.end(), word) == 1;
}

TEST_CASE("bash completes commands and their commands", "[completion]") {
  CHECK(Bash({"tr"}) == Words{"train"});
  CHECK(Has(Bash({""}), "submit"));
  CHECK_FALSE(Has(Bash({""}), "supervise"));
  CHECK(Bash({"checkpoint", ""}) ==
        Words{"create", "list", "verify", "show", "diff", "repair", "quantise"});
  CHECK(Bash({"checkpoint", "v"}) == Words{"verify"});
  CHECK(Bash({"generate", ""}) == Words{"criteo", "movielens"});
  CHECK(Bash({"nonsense", "x"}).empty());
}

TEST_CASE("bash offers exactly the options of every command", "[completion]") {
  VisitCommands(DescribeCommands(), [](const CommandHelp& command) {
    INFO(command.path);
    Words words = absl::StrSplit(command.path, ' ');
    words.erase(words.begin());
    words.push_back("-");
    Words expected;
    for (const ArgumentHelp& option : command.options) expected.push_back(option.names.back());
    CHECK(Bash(words) == expected);
    CHECK(Has(expected, "--help"));
  });
}

TEST_CASE("bash completes values by their kind", "[completion]") {
  Words files = Bash({"train", "-f", "job"});
  std::sort(files.begin(), files.end());
  CHECK(files == Words{"job one.yaml", "job2.yaml"});
  CHECK(Bash({"train", "--file", "job2"}) == Words{"job2.yaml"});
  CHECK(Bash({"train", "--file", "=", "job2"}) == Words{"job2.yaml"});
  CHECK(Has(Bash({"train", "--file", "="}), "job2.yaml"));
  CHECK(Bash({"up", "--dir", ""}) == Words{"data files"});
  CHECK(Has(Bash({"predict", "--format", ""}), "libsvm"));
  CHECK(Bash({"completion", ""}) == Words{"bash", "zsh", "fish"});
  CHECK(Bash({"explain", "spec.training.batch"}) == Words{"spec.training.batchSize"});
  CHECK(Bash({"train", "--set", "spec.training.batch"}) == Words{"spec.training.batchSize="});
  CHECK(Bash({"up", "--servers", ""}).empty());
  CHECK(Bash({"train", "-f", "job2.yaml", "--js"}) == Words{"--json"});
}

TEST_CASE("bash completes names of jobs by asking strata", "[completion]") {
  CHECK(Bash({"status", ""}) == Words{"clicks", "ctr-2"});
  CHECK(Bash({"cancel", "ct"}) == Words{"ctr-2"});
  CHECK(Bash({"predict", "--job", "cl"}) == Words{"clicks"});
}

TEST_CASE("zsh completes too", "[completion]") {
  if (!Installed("zsh")) STRATA_SKIP("zsh is not installed");
  const std::string script = Script("zsh");
  CHECK(Run("zsh -n " + script).lines.empty());
  // Completion's own functions exist in a terminal only; these say what they were asked for.
  const auto offers = [&](const std::string& words, const std::string& prefix) {
    const std::string code = absl::StrCat(
        "_describe() { print -l -- ${(P)@[-1]%%:*} }; _files() { print files $@ }; "
        "compadd() { print -l -- ${@:#-*} }; _message() { }; source ",
        script, "; words=(./strata ", words, " ", ShellQuote(prefix),
        "); CURRENT=${#words}; PREFIX=", ShellQuote(prefix), "; _strata");
    return Run("zsh -f -c " + ShellQuote(code)).lines;
  };
  CHECK(Has(offers("", ""), "submit"));
  CHECK(offers("checkpoint", "") ==
        Words{"create", "list", "verify", "show", "diff", "repair", "quantise"});
  CHECK(Has(offers("checkpoint list", "-"), "--job"));
  CHECK(offers("train -f", "") == Words{"files"});
  CHECK(offers("up --dir", "") == Words{"files -/"});
  CHECK(offers("completion", "") == Words{"bash", "zsh", "fish"});
  CHECK(offers("status", "") == Words{"jobs"});
}

TEST_CASE("fish completes too", "[completion]") {
  if (!Installed("fish")) STRATA_SKIP("fish is not installed");
  const std::string script = Script("fish");
  CHECK(Run("fish --no-execute " + script).lines.empty());
  const auto offers = [&](const std::string& line) {
    const Output output = Run(
        absl::StrCat("HOME='", Folder(), "' PATH='", Folder(), "':\"$PATH\" fish -N -c ",
                     ShellQuote(absl::StrCat("source ", script, "; complete -C '", line, "'"))));
    Words words;
    for (const std::string& l : output.lines) words.push_back(l.substr(0, l.find('\t')));
    return words;
  };
  CHECK(offers("strata tr") == Words{"train"});
  CHECK(offers("strata checkpoint ") ==
        Words{"create", "diff", "list", "quantise", "repair", "verify"});
  CHECK(Has(offers("strata checkpoint list --"), "--job"));
  CHECK_FALSE(Has(offers("strata checkpoint list --"), "--servers"));
  CHECK(offers("strata completion ") == Words{"bash", "fish", "zsh"});
  CHECK(offers("strata status c") == Words{"clicks", "ctr-2"});
  CHECK(offers("strata explain spec.training.batch") == Words{"spec.training.batchSize"});
  CHECK(offers("strata train --set spec.training.batch") == Words{"spec.training.batchSize="});
  CHECK(Has(offers("strata train -f job"), "job2.yaml"));
}

TEST_CASE("text is quoted for the shells", "[completion]") {
  CHECK(ShellQuote("it's") == "'it'\\''s'");
  CHECK(FishQuote("it's \\") == "'it\\'s \\\\'");
}

}  // namespace
}  // namespace strata

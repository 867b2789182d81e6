// README.md's commands, typed as they stand from top to bottom: blocks marked "sh", in order, in
// one shell. A block that begins with tools/ sets up (installs, builds, tests) and is left out.
// Numbers of lines and steps are a tenth of README's.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tests/e2e/cluster/process_cluster.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata::testing {
namespace {

namespace fs = std::filesystem;

constexpr char kExample[] = "tools/examples/criteo_deepfm.yaml";

struct Command {
  int line = 0;  // of README.md
  std::string section;
  std::string text;
};

struct Page {
  std::vector<Command> commands;
  std::vector<int> unmarked;  // lines outside of blocks marked "sh" that are commands of ours
};

Page ReadPage(const std::string& text) {
  Page page;
  std::istringstream lines(text);
  std::string line, section, block;  // `block`: what stands behind the opening ```
  bool inside = false, first = false, left_out = false;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (line.rfind("```", 0) == 0) {
      inside = !inside;
      first = inside;
      block = line.substr(3);
      continue;
    }
    if (!inside && line.rfind("## ", 0) == 0) section = line.substr(3);
    if (!inside || line.empty()) continue;
    if (block != "sh") {
      if (line.rfind("strata ", 0) == 0) page.unmarked.push_back(number);
      continue;
    }
    if (std::exchange(first, false)) left_out = line.rfind("tools/", 0) == 0;
    if (!left_out) page.commands.push_back({number, section, line});
  }
  return page;
}

// The number that the first match of `pattern` holds; a test that finds none fails.
uint64_t NumberIn(const std::string& text, const std::string& pattern) {
  std::smatch found;
  INFO(pattern);
  REQUIRE(std::regex_search(text, found, std::regex(pattern)));
  return std::stoull(found[1]);
}

// Each number that a match of `pattern` holds, replaced by a tenth of it, as wide as before where
// it begins with zeros.
std::string Tenth(const std::string& text, const std::string& pattern) {
  std::string out;
  const std::regex expression(pattern);
  auto at = text.cbegin();
  for (std::sregex_iterator m(text.begin(), text.end(), expression), end; m != end; ++m) {
    const auto& digits = (*m)[1];
    std::string number = absl::StrCat(std::stoull(digits) / 10);
    if (*digits.first == '0') {
      number.insert(0, static_cast<size_t>(digits.length()) - number.size(), '0');
    }
    out.append(at, digits.first).append(number);
    at = digits.second;
  }
  return out.append(at, text.cend());
}

std::string Scaled(std::string command) {
  for (const char* pattern :
       {"--rows (\\d+)", "--first-row (\\d+)", "step-(\\d+)", "--since (\\d+)"}) {
    command = Tenth(command, pattern);
  }
  return command;
}

// A shell script of the commands, which ends with the first that fails. The file "at" holds the
// line of README.md that runs.
std::string Script(const std::vector<Command>& commands) {
  std::string script = "set -e -u\nat=\"$PWD/at\"\n";
  for (const Command& c : commands) {
    absl::StrAppend(&script, "echo ", c.line, " >\"$at\"\n", Scaled(c.text), "\n");
    // Who types it reads the job's number before the next line; so a job is given time to start.
    if (c.text.rfind("strata submit", 0) == 0 && c.text.find("--wait") == std::string::npos) {
      absl::StrAppend(&script, "until strata status clicks --json | grep -q '\"step\":[1-9]'; do\n",
                      "  sleep 0.05\ndone\n");
    }
  }
  return script;
}

// Ends the cluster that the commands started, if they have not.
class ClusterEnd {
 public:
  explicit ClusterEnd(const std::string& folder) : folder_(folder) {}
  ~ClusterEnd() {
    try {
      RunStrata(folder_, {"down", "--dir", folder_ + "/demo/strata-run"});
    } catch (const std::exception& e) {
      WARN("cannot stop the cluster: " << e.what());
    }
  }

 private:
  const std::string folder_;
};

TEST_CASE("the commands of README.md work as they stand", "[e2e][readme]") {
  const Page page = ReadPage(ReadFile(Program("README.md")));
  const std::string example = ReadFile(Program(kExample));
  REQUIRE(page.commands.size() > 20);

  auto folder = ScratchFolder::Make("strata-readme");
  REQUIRE(folder.ok());
  const std::string home = folder->path();
  fs::create_directories(home + "/bin");
  fs::create_directories(home + "/tools/examples");
  fs::create_symlink(Program("tools/cli/strata"), home + "/bin/strata");
  for (const auto& other : fs::directory_iterator(Program("tools/examples"))) {
    if (other.path().extension() != ".yaml") continue;
    fs::copy_file(other.path(), home + "/tools/examples" / other.path().filename());
  }
  std::ofstream(absl::StrCat(home, "/", kExample)) << Tenth(example, "everySteps: (\\d+)");
  std::ofstream(home + "/script") << "export PATH=\"$PWD/bin:$PATH\"\n" << Script(page.commands);

  const ClusterEnd end(home);
  ChildProcess shell({"/bin/bash", home + "/script"}, home + "/said", home);
  const int code = shell.Wait(absl::Seconds(200));
  INFO("README.md, line " << ReadFile(home + "/at") << ReadFile(home + "/said.err"));
  CHECK(code == 0);
}

TEST_CASE("README.md shows commands in the marked blocks only, and steps that exist", "[readme]") {
  const Page page = ReadPage(ReadFile(Program("README.md")));
  const std::string example = ReadFile(Program(kExample));
  CHECK(page.unmarked == std::vector<int>());

  const uint64_t every = NumberIn(example, "everySteps: (\\d+)");
  const uint64_t examples_a_step =
      NumberIn(example, "lanes: (\\d+)") * NumberIn(example, "batchSize: (\\d+)");
  uint64_t rows = 0, five = 0, steps = 0;
  for (const Command& c : page.commands) {
    INFO("line " << c.line << ": " << c.text);
    five += c.section == "A cluster in five commands";
    if (rows == 0 && c.text.find("--rows") != std::string::npos) {
      rows = NumberIn(c.text, "--rows (\\d+)");
    }
    for (const char* pattern : {"step-(\\d+)", "--since (\\d+)"}) {
      std::smatch found;
      if (!std::regex_search(c.text, found, std::regex(pattern))) continue;
      ++steps;
      CHECK(std::stoull(found[1]) % every == 0);
      CHECK(std::stoull(found[1]) * examples_a_step < rows);
    }
  }
  CHECK(five == 5);
  CHECK(steps == 2);
}

TEST_CASE("the page is read as it is meant", "[readme]") {
  const Page page = ReadPage(
      "## One\n```sh\ntools/setup\nstrata no\n```\n```\nstrata lost\n```\n"
      "## Two\n```sh\nstrata generate --rows 400 --output x\nls   # so\n```\nstrata words\n");
  REQUIRE(page.commands.size() == 2);
  CHECK(page.commands[0].line == 11);
  CHECK(page.commands[0].section == "Two");
  CHECK(page.commands[1].text == "ls   # so");
  CHECK(page.unmarked == std::vector<int>{7});
  CHECK(Scaled(page.commands[0].text) == "strata generate --rows 40 --output x");
  CHECK(Scaled("diff ck/step-000000000200 ck") == "diff ck/step-000000000020 ck");
}

}  // namespace
}  // namespace strata::testing

// The manual: every command and field is in it, and troff reads it without a warning.
#include "tools/cli/describe/man_page.h"

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/skip.h"
#include "tools/cli/describe/command_help.h"
#include "tools/cli/describe/commands.h"
#include "tools/cli/describe/job_schema.h"

namespace strata {
namespace {

const std::map<std::string, std::string>& Pages() {
  static const auto* pages = new std::map<std::string, std::string>([] {
    auto made = ManualPages(DescribeCommands(), JobSchema());
    made["strata-server.8"] =
        DaemonPage("strata-server", "owns shards",
                   "Usage: strata-server [OPTIONS]\n\n'quoted' .dot\n\n  --name TEXT  a\\b\n");
    return made;
  }());
  return *pages;
}

std::string Run(const std::string& command) {
  std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  char buffer[4096];
  while (const size_t n = std::fread(buffer, 1, sizeof(buffer), pipe)) text.append(buffer, n);
  pclose(pipe);
  return text;
}

bool HasGroff() { return std::system("command -v groff >/dev/null") == 0; }

std::string Write(const std::string& name) {
  const std::string path = absl::StrCat(std::getenv("TEST_TMPDIR"), "/", name);
  std::ofstream(path) << Pages().at(name);
  return path;
}

void CheckPage(const CommandHelp& command) {
  std::string name = command.path;
  for (char& c : name) c = c == ' ' ? '-' : c;
  INFO(name);
  REQUIRE(Pages().count(name + ".1") == 1);
  const std::string& page = Pages().at(name + ".1");
  for (const ArgumentHelp& option : command.options) {
    CHECK(absl::StrContains(page, TroffEscape(option.names.back())));
    CHECK(absl::StrContains(page, TroffEscape(option.text)));
  }
  for (const ArgumentHelp& argument : command.positionals) {
    CHECK(absl::StrContains(page, TroffEscape(argument.text)));
  }
  CHECK(absl::StrContains(page, ".SH EXIT STATUS"));
  for (const CommandHelp& below : command.commands) {
    CHECK(absl::StrContains(page, TroffEscape(below.text)));
    CheckPage(below);
  }
}

TEST_CASE("every command has a page with its options", "[man]") {
  CheckPage(DescribeCommands());
  CHECK(Pages().count("strata-supervise.1") == 0);
}

TEST_CASE("the page of the job file has every field", "[man]") {
  const std::string& page = Pages().at("strata-job.5");
  for (const std::string& path : AllPaths()) {
    INFO(path);
    CHECK(absl::StrContains(page, absl::StrCat(".B ", path, "\n")));
  }
}

TEST_CASE("troff reads every page without a warning", "[man]") {
  if (!HasGroff()) STRATA_SKIP("groff is not installed");
  for (const auto& [name, text] : Pages()) {
    INFO(name);
    CHECK(Run(absl::StrCat("groff -man -Tutf8 -ww -z ", Write(name))).empty());
  }
}

TEST_CASE("what is printed is what was written", "[man]") {
  if (!HasGroff()) STRATA_SKIP("groff is not installed");
  const auto shown = [](const std::string& name) {
    return Run(absl::StrCat("groff -man -Tutf8 -P-cbou -rLL=200n ", Write(name)));
  };
  const std::string train = shown("strata-train.1");
  CHECK(absl::StrContains(train, "strata-train - train a job in this process"));
  CHECK(absl::StrContains(train, "-f, --file FILE"));
  CHECK(absl::StrContains(train, "--set spec.training.batchSize=4096"));
  const std::string job = shown("strata-job.5");
  CHECK(absl::StrContains(job, "final + (1 - final) (1 - min(u, T) / T)^power"));
  CHECK(absl::StrContains(job, "One character, or \"\\\\t\"."));
  const std::string daemon = shown("strata-server.8");
  CHECK(absl::StrContains(daemon, "'quoted' .dot"));
  CHECK(absl::StrContains(daemon, "--name TEXT  a\\b"));
}

}  // namespace
}  // namespace strata

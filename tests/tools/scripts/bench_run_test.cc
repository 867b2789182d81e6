// tools/bench/run with the real benchmarks; the build is left out.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>

#include "tests/tools/scripts/script.h"

namespace strata::testing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class Bench : public Checkout {
 public:
  Bench() : Checkout({}) {
    UseSystems({"bash", "dirname", "realpath"});
    Stub("bazel", "echo \"$@\" >>builds\n");
    const std::string runfiles = std::string(std::getenv("TEST_SRCDIR")) + "/strata/";
    fs::create_directories(root() + "/tools/bench");
    fs::copy_file(runfiles + "tools/bench/run", root() + "/tools/bench/run");
    fs::create_directories(root() + "/.bazel-bin/tools/bench");
    fs::create_symlink(runfiles + "tools/bench/strata-bench",
                       root() + "/.bazel-bin/tools/bench/strata-bench");
  }
  // As typed in the folder "here".
  ScriptResult Type(const std::string& arguments) {
    fs::create_directories(root() + "/here");
    return Run("cd here && bash ../tools/bench/run " + arguments);
  }
};

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("bench/run builds first and names the benchmarks", "[scripts]") {
  Bench c;
  const ScriptResult r = c.Type("--list");
  INFO(r.err);
  REQUIRE(r.exit_code == 0);
  CHECK(Has(c.Read("builds"), "//tools/bench:strata-bench"));
  std::set<std::string> names;
  std::istringstream lines(r.out);
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    const std::string name = line.substr(0, line.find(' '));
    CHECK(names.insert(name).second);
    CHECK(line.find_first_not_of(' ', name.size()) < line.size());  // what it is about
  }
  for (const char* name : {"wire_pull", "wire_push", "train_lr", "train_fm", "train_deepfm",
                           "parse_criteo", "table", "ssd", "restart", "checkpoint"}) {
    INFO(name);
    CHECK(names.contains(name));
  }
}

TEST_CASE("bench/run prints a line of JSON per figure, or a table", "[scripts]") {
  Bench c;
  const ScriptResult r = c.Type("parse_criteo --json --seconds 0.02 --rounds 1");
  INFO(r.err);
  REQUIRE(r.exit_code == 0);
  int figures = 0;
  std::istringstream lines(r.out);
  for (std::string line; std::getline(lines, line); ++figures) {
    INFO(line);
    const Json figure = Json::parse(line);
    CHECK(figure.size() == 8);
    CHECK(figure.at("bench") == "parse_criteo");
    CHECK(figure.at("name").is_string());
    CHECK(figure.at("unit") == "MB/s");
    CHECK(figure.at("value") > 0);
    CHECK(figure.at("limit") > 0);
    CHECK(figure.at("ratio").get<double>() ==
          Approx(figure.at("value").get<double>() / figure.at("limit").get<double>()));
    // No peer was given, and none is made up.
    CHECK(figure.at("peer").is_null());
    CHECK(figure.at("peer_ratio").is_null());
  }
  CHECK(figures == 2);
  const ScriptResult table = c.Type("parse_criteo --seconds 0.02 --rounds 1");
  CHECK(table.exit_code == 0);
  CHECK(table.out.rfind("bench ", 0) == 0);
  CHECK(Has(table.out, "\nparse_criteo "));
}

TEST_CASE("bench/run refuses what it does not know before anything is measured", "[scripts]") {
  Bench c;
  const auto refused = [&](const std::string& arguments, const std::string& why) {
    const ScriptResult r = c.Type(arguments);
    INFO(arguments << ": " << r.out << r.err);
    CHECK(r.exit_code == 2);
    CHECK(r.out.empty());
    CHECK(Has(r.err, why));
  };
  refused("parse_criteo wire_pul", "no benchmark is named wire_pul; --list shows them");
  refused("parse_criteo --seconds 0", "--seconds");
  refused("parse_criteo --seconds", "--seconds");
  refused("parse_criteo --rounds -1", "--rounds");
  refused("parse_criteo --baselines gone", "--baselines");
  refused("--jsn", "--jsn");
  // A folder of peers is named from where the caller stands.
  fs::create_directories(c.root() + "/here/peers");
  CHECK(c.Type("--list --baselines peers").exit_code == 0);
  CHECK(c.Type("--list --baselines=peers").exit_code == 0);
  CHECK(Has(c.Type("--help").out, "constants of another machine"));
}

}  // namespace
}  // namespace strata::testing

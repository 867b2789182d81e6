// tools/quickstart: what it refuses, and a file of the user's own through a real cluster.
#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/tools/scripts/script.h"

namespace strata::testing {
namespace {

namespace fs = std::filesystem;

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// With setup and build left out: the programs are there.
class Ready : public Checkout {
 public:
  Ready();
};

Ready::Ready() : Checkout({"quickstart"}) {
  UseSystems({"awk", "basename", "bash", "cat", "dirname", "grep", "head", "mkdir", "od", "sed",
              "tail", "tr", "wc"});
  Stub("bazel", "exit 0\n");
  Write("tools/setup", "#!/bin/bash\n");
  chmod((root() + "/tools/setup").c_str(), 0755);
  for (const char* program : {"tools/cli/strata", "scheduler/strata-scheduler",
                              "server/strata-server", "worker/strata-worker"}) {
    const fs::path link = root() + "/.bazel-bin/" + program;
    fs::create_directories(link.parent_path());
    fs::create_symlink(std::string(std::getenv("TEST_SRCDIR")) + "/strata/" + program, link);
  }
}

TEST_CASE("quickstart refuses what it cannot use before it does anything", "[scripts]") {
  Ready c;
  c.Write("empty", "");
  c.Write("packed", "\x1f\x8b\x08 and more");
  c.Write("x.csv", "clicked,user\n1,a\n");
  const auto refused = [&](const std::string& arguments, const std::string& why) {
    const ScriptResult r = c.Run("bash tools/quickstart " + arguments);
    INFO(arguments << ": " << r.err);
    CHECK(r.exit_code == 2);
    CHECK(Has(r.err, why));
    CHECK(Has(r.err, "--help"));
  };
  refused("--data gone --format libfm", "--data gone: no such file, or not readable");
  refused("--data empty --format libfm", "--data empty: is empty");
  refused("--data packed --format libfm", "--data packed: is compressed");
  refused("--data x.csv", "--data wants --format: criteo");
  refused("--data x.csv --format cvs", "--format cvs is none of: criteo");
  refused("--data x.csv --format csv", "--format csv wants --columns FILE");
  refused("--data x.csv --format csv --columns gone", "--columns gone: no such file");
  refused("--data x.csv --format libfm --columns x.csv", "--columns goes with --format csv");
  refused("--format csv", "--format goes with --data");
  refused("--rows 0", "--rows 0: wants a number of lines");
  refused("--rows", "--rows wants a value");
  refused("again", "unknown argument 'again'");
  CHECK_FALSE(c.Exists("strata-run"));
  const ScriptResult help = c.Run("bash tools/quickstart --help");
  CHECK(help.exit_code == 0);
  CHECK(Has(help.out, "--columns FILE"));
}

TEST_CASE("quickstart trains on a csv file of the user's own", "[scripts]") {
  Ready c;
  std::string data = "clicked,user,place,note\n";
  for (int i = 0; i < 400; ++i) {
    data += std::to_string(i % 2) + ",u" + std::to_string(i % 6) + ",p" + std::to_string(i % 5) +
            ",x\n";
  }
  c.Write("my data.csv", data);
  // Columns that the file has not: told before a cluster is started.
  c.Write("columns", "label: clicked\ncategoricl: [user]\n");
  ScriptResult r =
      c.Run("bash tools/quickstart --data 'my data.csv' --format csv --columns columns --dir q");
  INFO(r.err);
  CHECK(r.exit_code == 2);
  CHECK(Has(r.err, "categorical"));
  CHECK_FALSE(c.Exists("q/cluster"));

  c.Write("columns",
          "# mine\ncolumns:\n  label: clicked\n  categorical: [user, place]\n"
          "  ignored: [note]\n");
  r = c.Run("bash tools/quickstart --data 'my data.csv' --format csv --columns columns --dir q");
  INFO(r.err << r.out);
  REQUIRE(r.exit_code == 0);
  CHECK(Has(r.out, "AUC 1.0000"));  // even users click, odd ones do not
  CHECK(Has(r.out, "Where things lie:"));
  CHECK(Has(r.err, " is down"));
  const std::string predictions = c.Read("q/predictions.csv");
  CHECK(std::count(predictions.begin(), predictions.end(), '\n') == 40);
  CHECK(c.Exists("q/metrics.jsonl"));
  CHECK(c.Exists("q/cluster/logs/server-1.log"));
  CHECK(Has(r.out, c.root() + "/q/checkpoints"));
}

}  // namespace
}  // namespace strata::testing

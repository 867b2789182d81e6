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

size_t Lines(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
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
  CHECK(Lines(predictions) == 40);
  CHECK(c.Exists("q/metrics.jsonl"));
  CHECK(c.Exists("q/cluster/logs/server-1.log"));
  CHECK(Has(r.out, c.root() + "/q/checkpoints"));
}

TEST_CASE("quickstart makes data of its own, trains on them and cleans up", "[scripts]") {
  Ready c;
  const ScriptResult r = c.Run("bash tools/quickstart --rows 2000");
  INFO(r.err << r.out);
  REQUIRE(r.exit_code == 0);
  CHECK(Has(r.err, "making 2000 lines to train on and 201 to evaluate on"));
  const std::string dir = "strata-run/quickstart";
  CHECK(Lines(c.Read(dir + "/train.data")) == 2000);
  CHECK(Lines(c.Read(dir + "/test.data")) == 201);
  CHECK(Has(r.out, "job quickstart succeeded\n  AUC 0."));
  CHECK(Has(r.out, ", logloss "));
  CHECK(Has(r.out, " on 201 held-out examples"));
  CHECK(Lines(c.Read(dir + "/predictions.csv")) == 201);
  CHECK(c.Exists(dir + "/metrics.jsonl"));
  for (const char* process : {"scheduler", "server-0", "server-1", "worker-0", "worker-1"}) {
    INFO(process);
    CHECK(c.Exists(dir + "/cluster/logs/" + process + ".log"));
  }
  CHECK(Has(r.err, " is down"));
  // What it says last is typed.
  const std::string use = "Use the model:\n";
  const size_t at = r.out.find(use);
  REQUIRE(at != std::string::npos);
  const ScriptResult predict = c.Run(r.out.substr(at + use.size()));
  INFO(predict.err);
  CHECK(predict.exit_code == 0);
  CHECK(predict.out == c.Read(dir + "/predictions.csv"));
}

TEST_CASE("quickstart trains on a libfm file", "[scripts]") {
  Ready c;
  std::string data;
  for (int i = 0; i < 400; ++i) {
    data += (i % 2 == 0 ? "1 " : "-1 ") + std::to_string(i % 6) + ":1 " +
            std::to_string(10 + i % 5) + ":0.5\n";
  }
  c.Write("own.libfm", data);
  const ScriptResult r = c.Run("bash tools/quickstart --data=own.libfm --format=libfm --dir=q");
  INFO(r.err << r.out);
  REQUIRE(r.exit_code == 0);
  CHECK(Has(r.out, "AUC 1.0000"));
  CHECK(c.Read("q/train.data") + c.Read("q/test.data") == data);
  CHECK(Lines(c.Read("q/predictions.csv")) == 40);
}

}  // namespace
}  // namespace strata::testing

// tools/count_tests.py on build events of our own making.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/tools/scripts/script.h"

namespace strata::testing {
namespace {

// What Bazel tells of a test that ran: events, and an XML file with `cases`, of which the first
// `failed` failed.
std::string Events(Checkout& c, const std::string& name, const std::string& status, int cases,
                   int failed, const std::string& log = "") {
  std::string xml = "<testsuites><testsuite>";
  for (int i = 0; i < cases; ++i) {
    xml += "<testcase name=\"case " + std::to_string(i) + "\">" +
           (i < failed ? "<failure>no</failure>" : "") + "</testcase>";
  }
  c.Write(name + ".xml", xml + "</testsuite></testsuites>");
  c.Write(name + ".log", log);
  const std::string id = "{\"label\":\"//tests:" + name + "\"}";
  const auto output = [&](const std::string& kind) {
    return "{\"name\":\"test." + kind + "\",\"uri\":\"file://" + c.root() + "/" + name + "." +
           kind + "\"}";
  };
  return "{\"id\":{\"testResult\":" + id + "},\"testResult\":{\"testActionOutput\":[" +
         output("xml") + "," + output("log") + "]}}\n{\"id\":{\"testSummary\":" + id +
         "},\"testSummary\":{\"overallStatus\":\"" + status + "\"}}\n";
}

class Count {
 public:
  Count() { c.UseSystems({"python3"}); }
  // Exit code of the script, whose output is `out` then.
  int Run(const std::string& events, const std::string& targets, int bazel_exit,
          const std::string& name = "''") {
    c.Write("events", events);
    c.Write("targets", targets);
    const ScriptResult r = c.Run("python3 tools/count_tests.py --run " + name + " events targets " +
                                 std::to_string(bazel_exit) + " --checks checks");
    INFO(r.err);
    CHECK(r.err.empty());
    out = r.out;
    return r.exit_code;
  }
  Checkout c{std::vector<std::string>{"count_tests.py"}};
  std::string out;
};

TEST_CASE("cases that pass are counted over targets and checks", "[scripts]") {
  Count t;
  t.c.Write("checks", "passed\ttests/structure/check_a\npassed\ttests/fuzz:b\n");
  const std::string events = "{\"id\":{\"started\":{}}}\n" + Events(t.c, "a", "PASSED", 3, 0) +
                             Events(t.c, "b", "FLAKY", 2, 0);
  CHECK(t.Run(events, "//tests:a\n//tests:b\n", 0) == 0);
  CHECK(t.out == "7 passed, 0 failed\n");
}

TEST_CASE("failed and skipped cases are listed and not passed", "[scripts]") {
  Count t;
  t.c.Write("checks", "failed\tcheck_x\nskipped\ttests/fuzz:y\npassed\tcheck_z\n");
  const std::string events =
      Events(t.c, "a", "FAILED", 3, 1) +
      Events(t.c, "b", "PASSED", 4, 0, "x\nSKIPPED: some case: no disk\nSKIPPED: other: why\n");
  CHECK(t.Run(events, "//tests:a\n//tests:b\n", 3) == 1);
  CHECK(t.out ==
        "SKIPPED //tests:b: other: why\nSKIPPED //tests:b: some case: no disk\n"
        "SKIPPED tests/fuzz:y\nFAILED  //tests:a: case 0\nFAILED  check_x\n5 passed, 2 failed\n");
}

// Bazel's output comes in pieces that may end anywhere.
TEST_CASE("what a compiler or linker warns of has failed, each line once", "[scripts]") {
  Count t;
  const auto shown = [](const std::string& out, const std::string& err) {
    return "{\"id\":{\"progress\":{}},\"progress\":{\"stdout\":\"" + out + "\",\"stderr\":\"" +
           err + "\"}}\n";
  };
  const std::string harmless = "x.cc: In function 'f':\\n  3 | Warn(\\\"a warning: none\\\");\\n" +
                               std::string("WARNING: From Compiling x.cc:\\n");
  const std::string passed = Events(t.c, "a", "PASSED", 1, 0);
  CHECK(t.Run(shown("", harmless) + passed, "//tests:a", 0) == 0);
  CHECK(t.out == "1 passed, 0 failed\n");
  CHECK(t.Run(shown("", harmless + "x.cc:3:14: warn") +
                  shown("", "ing: unused [-Wunused]\\nx.cc:3:14: warning: unused [-Wunused]\\n") +
                  shown("", "k.cu(7): warning #177-D: unused\\ncc1plus: warning: b\\n") +
                  shown("/usr/bin/ld: warning: c\\n/usr/bin/ld: y.o: warning: d\\n", "") + passed,
              "//tests:a", 0, "cuda") == 1);
  CHECK(t.out ==
        "FAILED  bazel test [cuda]: /usr/bin/ld: warning: c\n"
        "FAILED  bazel test [cuda]: /usr/bin/ld: y.o: warning: d\n"
        "FAILED  bazel test [cuda]: cc1plus: warning: b\n"
        "FAILED  bazel test [cuda]: k.cu(7): warning #177-D: unused\n"
        "FAILED  bazel test [cuda]: x.cc:3:14: warning: unused [-Wunused]\n"
        "1 passed, 5 failed\n");
}

TEST_CASE("a target that ends without a failed case has failed once", "[scripts]") {
  Count t;
  // It crashed after its XML was written; it was killed before; it did not build.
  const std::string events = Events(t.c, "crashed", "FAILED", 2, 0) +
                             Events(t.c, "late", "TIMEOUT", 0, 0) +
                             Events(t.c, "good", "PASSED", 1, 0);
  CHECK(t.Run(events, "//tests:crashed //tests:late\n//tests:good //tests:absent", 1, "asan") == 1);
  CHECK(t.out ==
        "FAILED  //tests:absent [asan]: did not build or did not run\n"
        "FAILED  //tests:crashed [asan]: ended with FAILED\n"
        "FAILED  //tests:late [asan]: ended with TIMEOUT\n"
        "FAILED  bazel test [asan] could not build everything (exit code 1)\n3 passed, 4 failed\n");
}

TEST_CASE("an error of Bazel's own is a failure, and so is a run of nothing", "[scripts]") {
  Count t;
  CHECK(t.Run(Events(t.c, "a", "PASSED", 1, 0), "//tests:a\n", 3) == 1);
  CHECK(t.out == "FAILED  bazel test exited with 3\n1 passed, 1 failed\n");
  CHECK(t.Run("", "", 0) == 1);
  CHECK(t.out == "0 passed, 0 failed\n");
  // An XML file that is broken or gone.
  const std::string events = Events(t.c, "a", "FAILED", 1, 0);
  t.c.Write("a.xml", "<testsui");
  CHECK(t.Run(events, "//tests:a\n", 3) == 1);
  CHECK(t.out == "FAILED  //tests:a: ended with FAILED\n0 passed, 1 failed\n");
}

}  // namespace
}  // namespace strata::testing

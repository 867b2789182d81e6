// What ends and outputs of children mean: scripts in the place of test binaries and of gpu_check.
#include "tools/gpu/check/check.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/temp_folder.h"
#include "tools/gpu/check/part_list.h"
#include "tools/gpu/check/part_output.h"
#include "tools/gpu/report/bar_line.h"
#include "tools/gpu/report/report.h"
#include "tools/gpu/report/schedule.h"

namespace strata::gpu_check {
namespace {

namespace fs = std::filesystem;

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class Bundle {
 public:
  Bundle() {
    for (const char* name : {"/out", "/bin", "/toolkit/bin"}) {
      fs::create_directories(folder_.path() + name);
    }
    options.self = folder_.path() + "/bin/gpu_check";
    options.programs = folder_.path() + "/bin";
    options.logs = folder_.path() + "/out";
    options.archive = "results/logs.tar";
    options.toolkit = folder_.path() + "/toolkit";
  }
  void Program(const std::string& name, const std::string& script) {
    const std::string path = folder_.path() + "/" + name;
    std::ofstream(path) << "#!/bin/sh\n" << script;
    chmod(path.c_str(), 0755);
  }
  PlannedPart Plan(PartKind kind) {
    PartEntry entry;
    entry.kind = kind;
    entry.name = "some part";
    entry.program = kind == PartKind::kBar ? "gather" : "pool_test";
    entry.least_seconds = 1;
    entry.most_seconds = 50;
    return PlanChecks({entry}, options).front();
  }
  PartResult Run(PartKind kind, double limit_seconds = 30) {
    const PlannedPart part = Plan(kind);
    INFO(part.missing);
    REQUIRE(part.missing.empty());
    return part.run(limit_seconds);
  }
  CheckOptions options;

 private:
  const TempFolder folder_;
};

BarLine Line(double ms) {
  BarLine line;
  line.bar = "gather";
  line.ms = ms;
  line.most_ms = 1;
  return line;
}

TEST_CASE("what is not there is missing, with its name", "[gpu_check]") {
  Bundle b;
  CHECK(Has(b.Plan(PartKind::kTest).missing, "there is no "));
  CHECK(Has(b.Plan(PartKind::kTest).missing, "/bin/pool_test"));
  CHECK(b.Plan(PartKind::kBar).missing.empty());
  b.Program("bin/pool_test", "");
  CHECK(b.Plan(PartKind::kTest).missing.empty());
  CHECK(Has(b.Plan(PartKind::kMemcheck).missing, "there is no compute-sanitizer"));
  b.Program("toolkit/bin/compute-sanitizer", "");
  CHECK(b.Plan(PartKind::kRacecheck).missing.empty());
  const PlannedPart part = b.Plan(PartKind::kDevice);
  CHECK(part.all_need_it);
  CHECK(part.name == "some part");
  CHECK(part.most_seconds == 50);

  PartEntry entry;
  entry.kind = PartKind::kBar;
  entry.missing = "not in this build";
  CHECK(PlanChecks({entry}, b.options)[0].missing == "not in this build");
}

TEST_CASE("a test's cases are counted", "[gpu_check]") {
  Bundle b;
  b.Program("bin/pool_test", "echo 'All tests passed (9 assertions in 4 test cases)'");
  PartResult r = b.Run(PartKind::kTest);
  CHECK(r.state == PartState::kPassed);
  CHECK(r.cases == CaseCounts{4, 0, 0});
  CHECK(fs::exists(b.options.logs + "/some-part.log"));

  b.Program("bin/pool_test",
            "echo 'x.cc:3: FAILED:'; echo '  CHECK( a )'\n"
            "echo 'test cases: 4 | 3 passed | 1 failed'; exit 1");
  r = b.Run(PartKind::kTest);
  CHECK(r.state == PartState::kFailed);
  CHECK(r.cases == CaseCounts{3, 1, 0});
  CHECK(Has(r.reason,
            "exit code 1: x.cc:3: FAILED: CHECK( a ); see some-part.log in results/logs.tar"));

  b.Program("bin/pool_test",
            "echo 'SKIPPED: a: no device'; echo 'All tests passed (1 assertion in 1 test case)'");
  r = b.Run(PartKind::kTest);
  CHECK(r.state == PartState::kSkipped);
  CHECK(r.cases == CaseCounts{0, 0, 1});
}

TEST_CASE("a test that does not end well has failed", "[gpu_check]") {
  Bundle b;
  b.Program("bin/pool_test", "exit 0");
  CHECK(b.Run(PartKind::kTest).state == PartState::kFailed);
  b.Program("bin/pool_test", "kill -6 $$");
  PartResult r = b.Run(PartKind::kTest);
  CHECK(r.state == PartState::kFailed);
  CHECK(Has(r.reason, "killed by signal 6"));
  b.Program("bin/pool_test",
            "echo 'All tests passed (9 assertions in 4 test cases)'; exec sleep 1000");
  r = b.Run(PartKind::kTest, 0.5);
  CHECK(r.state == PartState::kFailed);
  CHECK(Has(r.reason, "not done within"));
}

TEST_CASE("a bar passes when all its lines keep theirs", "[gpu_check]") {
  Bundle b;
  b.options.part_arguments = {"--cublas", "x.so"};
  b.options.environment = {"CUDA_VISIBLE_DEVICES=GPU-9"};
  const auto say = [](const BarLine& line) {
    return "echo '" + BarLineJson(line) + "' | sed 's/^/bar /'\n";
  };
  b.Program("bin/gpu_check",
            "echo fact arguments: $@ $CUDA_VISIBLE_DEVICES\n" + say(Line(0.5)) + say(Line(1.0)));
  PartResult r = b.Run(PartKind::kBar);
  INFO(r.reason);
  CHECK(r.state == PartState::kPassed);
  CHECK(r.lines.size() == 2);
  REQUIRE(r.facts.size() == 1);
  CHECK(r.facts[0].second == "--part gather --part_seconds 30 --cublas x.so GPU-9");

  b.Program("bin/gpu_check", say(Line(0.5)) + say(Line(1.5)));
  r = b.Run(PartKind::kBar);
  CHECK(r.state == PartState::kFailed);
  CHECK(r.reason == "1 of 2 lines missed their bar");

  b.Program("bin/gpu_check", "true");
  CHECK(b.Run(PartKind::kBar).state == PartState::kFailed);
  CHECK(b.Run(PartKind::kDevice).state == PartState::kPassed);
  b.Program("bin/gpu_check", say(Line(0.5)) + "echo an illegal address >&2; exit 1");
  r = b.Run(PartKind::kBar);
  CHECK(r.state == PartState::kFailed);
  CHECK(r.reason == "exit code 1: an illegal address");
  CHECK(r.lines.size() == 1);
  b.Program("bin/gpu_check", "echo no device: none at all; exit 77");
  r = b.Run(PartKind::kBar);
  CHECK(r.state == PartState::kSkipped);
  CHECK(r.reason == "no device: none at all");
  b.Program("bin/gpu_check", say(Line(0.5)) + "exec sleep 1000");
  r = b.Run(PartKind::kBar, 0.5);
  CHECK(r.state == PartState::kFailed);
  CHECK(r.lines.size() == 1);
}

TEST_CASE("compute-sanitizer's findings fail a part, its absence skips it", "[gpu_check]") {
  Bundle b;
  b.Program("bin/pool_test", "echo \"$STRATA_TEST_APIS\"");
  const std::string passed = "echo 'All tests passed (9 assertions in 4 test cases)'\n";
  b.Program("toolkit/bin/compute-sanitizer",
            "echo \"$@\"; \"$5\"\n" + passed + "echo '========= ERROR SUMMARY: 0 errors'");
  PartResult r = b.Run(PartKind::kMemcheck);
  CHECK(r.state == PartState::kPassed);
  CHECK(r.cases == CaseCounts{4, 0, 0});
  std::ifstream log(b.options.logs + "/some-part.log");
  std::string line;
  std::getline(log, line);
  CHECK(Has(line, "--tool memcheck --error-exitcode 86 "));
  std::getline(log, line);
  CHECK(line == "device");

  b.Program("toolkit/bin/compute-sanitizer",
            passed +
                "echo '========= Race reported between Write and Read'\n"
                "echo '========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)'\n"
                "exit 86");
  r = b.Run(PartKind::kRacecheck);
  CHECK(r.state == PartState::kFailed);
  CHECK(Has(r.reason,
            "0 errors, 1 hazards: Race reported between Write and Read; see some-part.log in "
            "results/logs.tar"));
  b.Program("toolkit/bin/compute-sanitizer",
            "echo '========= ERROR SUMMARY: 0 errors'\necho 'test cases: 1 | 1 failed'; exit 1");
  CHECK(b.Run(PartKind::kMemcheck).state == PartState::kFailed);
  b.Program("toolkit/bin/compute-sanitizer", "echo '========= Error: not permitted'; exit 1");
  r = b.Run(PartKind::kMemcheck);
  CHECK(r.state == PartState::kSkipped);
  CHECK(r.reason == "exit code 1: Error: not permitted");
  b.Program("toolkit/bin/compute-sanitizer", "exec sleep 1000");
  r = b.Run(PartKind::kMemcheck, 0.5);
  CHECK(r.state == PartState::kSkipped);
  CHECK(Has(r.reason, "not done within"));
}

}  // namespace
}  // namespace strata::gpu_check

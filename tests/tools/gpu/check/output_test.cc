// What children say: Catch2, compute-sanitizer, and gpu_check's own parts.
#include <catch2/catch.hpp>
#include <string>

#include "absl/status/status.h"
#include "tools/gpu/check/catch_output.h"
#include "tools/gpu/check/part_output.h"
#include "tools/gpu/check/sanitizer_output.h"
#include "tools/gpu/report/bar_line.h"
#include "tools/gpu/report/report.h"

namespace strata::gpu_check {
namespace {

const std::string kLine(79, '=');

TEST_CASE("cases are counted as Catch2 tells them", "[gpu_check]") {
  auto counts = CountCases(kLine + "\nAll tests passed (12 assertions in 3 test cases)\n\n");
  REQUIRE(counts.ok());
  CHECK(*counts == CaseCounts{3, 0, 0});
  counts = CountCases("All tests passed (1 assertion in 1 test case)\n");
  CHECK(*counts == CaseCounts{1, 0, 0});
  counts =
      CountCases("test cases:  5 |  3 passed | 2 failed\nassertions: 90 | 88 passed | 2 failed");
  CHECK(*counts == CaseCounts{3, 2, 0});
  counts = CountCases("test cases: 2 | 2 failed\nassertions: 4 | 4 failed\n");
  CHECK(*counts == CaseCounts{0, 2, 0});
  counts = CountCases("No tests ran\n");
  CHECK(*counts == CaseCounts{0, 0, 0});
}

TEST_CASE("skipped cases are counted once, and not as passed", "[gpu_check]") {
  const auto counts = CountCases(
      "SKIPPED: pools rows, on a device: no device\n"
      "SKIPPED: pools rows, on a device: no device\n"
      "\nSKIPPED: multiplies: no library: none at all\n"
      "All tests passed (12 assertions in 3 test cases)\n");
  REQUIRE(counts.ok());
  CHECK(*counts == CaseCounts{2, 0, 2});
}

TEST_CASE("a test without a summary did not end well", "[gpu_check]") {
  for (const char* text : {"", "terminate called\n", "All tests\n"}) {
    CHECK(absl::IsNotFound(CountCases(text).status()));
  }
  CHECK(FirstFailure("x\npool_test.cc:12: FAILED:\n  CHECK( a == b )\nwith expansion:\n") ==
        "pool_test.cc:12: FAILED: CHECK( a == b )");
  CHECK(FirstFailure("all is well").empty());
}

TEST_CASE("errors are counted as compute-sanitizer tells them", "[gpu_check]") {
  auto counts =
      CountErrors("========= COMPUTE-SANITIZER\nhello\n========= ERROR SUMMARY: 0 errors\n");
  REQUIRE(counts.ok());
  CHECK(counts->errors == 0);
  CHECK(counts->first.empty());
  counts = CountErrors(
      "========= COMPUTE-SANITIZER\n"
      "========= Invalid __global__ read of size 4 bytes\n"
      "=========     at kernel+0x10\n"
      "=========\n"
      "========= Target application returned an error\n"
      "========= ERROR SUMMARY: 12 errors\n");
  REQUIRE(counts.ok());
  CHECK(counts->errors == 12);
  CHECK(counts->first == "Invalid __global__ read of size 4 bytes");
  counts = CountErrors(
      "========= COMPUTE-SANITIZER\n"
      "========= RACECHECK SUMMARY: 3 hazards displayed (2 errors, 1 warning)\n");
  REQUIRE(counts.ok());
  CHECK(counts->hazards == 3);
  counts = CountErrors(
      "========= COMPUTE-SANITIZER\n========= Error: Target application terminated before first "
      "instrumented API call\n");
  CHECK(absl::IsNotFound(counts.status()));
  CHECK(counts.status().message() ==
        "Error: Target application terminated before first instrumented API call");
  CHECK(CountErrors("ERROR SUMMARY: 0 errors").status().message() == "it ended without a summary");
}

TEST_CASE("what a part told before it was killed is kept", "[gpu_check]") {
  BarLine line;
  line.bar = "gather";
  line.ms = 2;
  std::string output = FactText("UUID", "GPU-1: x") + "loading\n" + BarText(line);
  line.ms = 3;
  output += BarText(line);
  PartResult part = ParsePartOutput(output + BarText(line).substr(0, 30));
  CHECK(part.state == PartState::kPassed);
  REQUIRE(part.lines.size() == 2);
  CHECK(part.lines[1].ms == 3);
  REQUIRE(part.facts.size() == 1);
  CHECK(part.facts[0].first == "UUID");
  CHECK(part.facts[0].second == "GPU-1: x");
  CHECK(LastWords(output + "  it broke \n\n") == "it broke");
  CHECK(LastWords(output) == "loading");

  part = ParsePartOutput(output + "bar {}\n");
  CHECK(part.state == PartState::kFailed);
  CHECK(part.reason == "a bar's line lacks the text bar");
  CHECK(part.lines.size() == 2);
}

}  // namespace
}  // namespace strata::gpu_check

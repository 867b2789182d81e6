// The report as JSON and as a table.
#include "tools/gpu/report/report.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/temp_folder.h"
#include "tools/gpu/report/bar_line.h"
#include "tools/gpu/report/result_table.h"

namespace strata::gpu_check {
namespace {

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

PartResult Part(const std::string& name, PartState state, const std::string& reason = "") {
  PartResult part;
  part.name = name;
  part.state = state;
  part.reason = reason;
  part.seconds = 1.5;
  return part;
}

BarLine Line(double ms) {
  BarLine line;
  line.bar = "gather";
  line.name = "rows of 64 B, 1 a bag";
  line.bytes = 1e9;
  line.operations = 5e6;
  line.operation = "rows";
  line.ms = ms;
  line.probe_ms = 0.5;
  line.copy_bytes_per_s = 4e12;
  line.least_of_copy = 0.5;
  return line;
}

Report Example() {
  Report report;
  report.budget_seconds = 480;
  report.parts.push_back(Part("device", PartState::kPassed));
  report.parts.back().facts = {{"UUID", "GPU-1"}, {"driver", "for CUDA 13.0"}};
  report.parts.push_back(Part("test pool_test", PartState::kPassed));
  report.parts.back().cases = {7, 0, 1};
  report.parts.push_back(Part("bar gather", PartState::kFailed, "1 of 2 lines missed their bar"));
  report.parts.back().lines = {Line(0.4), Line(1.0)};
  report.parts.push_back(Part("bar dlrm", PartState::kSkipped, "not in this build"));
  report.finished = true;
  report.proven = true;
  return report;
}

TEST_CASE("parts that were skipped for one reason are one row", "[gpu_check]") {
  Report report = Example();
  for (const char* name : {"memcheck a", "memcheck b", "racecheck a"}) {
    report.parts.push_back(Part(name, PartState::kSkipped, "no sanitizer"));
  }
  const std::string table = ResultTable(report);
  INFO(table);
  CHECK(Has(table, "bar dlrm                              1.5 s  not in this build\n"));
  CHECK(Has(table, "skipped  3 parts, memcheck a to racecheck a  no sanitizer\n"));
  CHECK_FALSE(Has(table, "memcheck b"));
  CHECK(Has(table, "parts: 2 passed, 1 failed, 4 skipped\n"));
}

TEST_CASE("the exit code is that of the worst part", "[gpu_check]") {
  Report report;
  CHECK(ExitCodeOf(report) == 3);
  report.parts = {Part("a", PartState::kPassed), Part("b", PartState::kSkipped)};
  CHECK(ExitCodeOf(report) == 3);
  report.proven = true;
  CHECK(ExitCodeOf(report) == 0);
  report.parts.push_back(Part("c", PartState::kFailed));
  CHECK(ExitCodeOf(report) == 1);
  report.device_found = false;
  CHECK(ExitCodeOf(report) == 77);
}

TEST_CASE("a report is written as JSON, whole", "[gpu_check]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/gpu_check.json";
  REQUIRE(WriteReport(Report(), path).ok());
  Report report = Example();
  report.parts[3].reason = "bytes of no text: \xff";
  REQUIRE(WriteReport(report, path).ok());
  CHECK_FALSE(std::filesystem::exists(path + ".new"));
  std::ifstream in(path);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const nlohmann::json json = nlohmann::json::parse(text);
  CHECK(json["exit_code"] == 1);
  CHECK(json["finished"] == true);
  REQUIRE(json["parts"].size() == 4);
  CHECK(json["parts"][0]["facts"]["UUID"] == "GPU-1");
  CHECK(json["parts"][1]["cases"]["passed"] == 7);
  CHECK(json["parts"][1]["cases"]["skipped"] == 1);
  CHECK(json["proven"] == true);
  CHECK(json["parts"][2]["state"] == "failed");
  CHECK(json["parts"][3]["no_time"] == false);
  CHECK(json["parts"][2]["lines"][0]["missed"].empty());
  CHECK(json["parts"][2]["lines"][0]["of_copy"] == Approx(0.625));
  CHECK(json["parts"][2]["lines"][1]["missed"][0] == "25.0 % of copy, wanted 50 %");
  CHECK(json["parts"][2]["lines"][1]["bytes"] == 1e9);

  const auto failed = WriteReport(report, folder.path() + "/none/gpu_check.json");
  CHECK(Has(std::string(failed.message()), "/none/gpu_check.json: No such file"));
}

TEST_CASE("a report for which there is no room leaves the one before, and no part of itself",
          "[gpu_check]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/gpu_check.json", next = path + ".new";
  std::ofstream(path) << "of the part before";
  std::filesystem::create_symlink("/dev/full", next);
  const absl::Status full = WriteReport(Example(), path);
  CHECK(Has(std::string(full.message()), "/gpu_check.json: No space left on device"));
  CHECK_FALSE(std::filesystem::is_symlink(next));
  std::ifstream kept(path);
  CHECK(std::string(std::istreambuf_iterator<char>(kept), {}) == "of the part before");
}

TEST_CASE("the table shows what there is, lines, parts, and the sum last", "[gpu_check]") {
  const std::string table = ResultTable(Example());
  INFO(table);
  CHECK(Has(table, "UUID         GPU-1\n"));
  CHECK(Has(table, "2500 GB/s"));
  CHECK(Has(table, "62.5%"));
  CHECK(Has(table, "1e+09 B, 5e+06 rows; kept"));
  CHECK(Has(table, "MISSED: 25.0 % of copy, wanted 50 %"));
  CHECK(Has(table, "cases: 7 passed, 0 failed, 1 skipped"));
  CHECK(Has(table, "not in this build"));
  const std::string last = "parts: 2 passed, 1 failed, 1 skipped\n";
  CHECK(table.substr(table.size() - last.size()) == last);

  Report keys = Example();
  keys.parts[2].lines[0].operation = "keys";
  CHECK(Has(ResultTable(keys), "12.50 Gkeys/s"));
  keys.parts[2].lines[0].least_of_copy = 0;
  keys.parts[2].lines[0].most_change = 0.1;
  keys.parts[2].lines[0].reference_ms = 0.41;
  CHECK(Has(ResultTable(keys), "5e+06 keys; kept"));

  Report late = Example();
  late.parts[2].state = PartState::kSkipped;
  late.parts[2].no_time = late.parts[3].no_time = true;
  CHECK(Has(ResultTable(late),
            "parts: 2 passed, 0 failed, 2 skipped, 2 of them since 480 s were too little; give a "
            "larger --budget_seconds\n"));
  late.proven = false;
  CHECK(Has(ResultTable(late), "larger --budget_seconds; nothing is proven\n"));

  Report none;
  none.device_found = false;
  CHECK(Has(ResultTable(none), "there is no device"));
}

TEST_CASE("a table has at most 12,000 characters, and keeps what failed", "[gpu_check]") {
  Report report = Example();
  for (int i = 0; i < 300; ++i) {
    report.parts.push_back(Part("filler " + std::to_string(i), PartState::kPassed,
                                std::string(500, 'x') + "\n" + std::string(500, 'y')));
  }
  report.parts.push_back(Part("the last", PartState::kFailed, "its reason"));
  const std::string table = ResultTable(report);
  CHECK(table.size() <= kMostTableBytes);
  CHECK(table.size() > kMostTableBytes / 2);
  CHECK(Has(table, "the last"));
  CHECK(Has(table, "its reason"));
  CHECK(Has(table, "MISSED"));
  CHECK(Has(table, " rows left out: gpu_check.json has them\n"));
  CHECK(Has(table, "parts: 302 passed, 2 failed, 1 skipped\n"));

  // Even when everything failed.
  for (PartResult& part : report.parts) part.state = PartState::kFailed;
  CHECK(ResultTable(report).size() <= kMostTableBytes);
  CHECK(Has(ResultTable(report), "parts: 0 passed, 305 failed, 0 skipped\n"));
}

}  // namespace
}  // namespace strata::gpu_check

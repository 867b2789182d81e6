// What a line of a bar comes to, and its JSON.
#include "tools/gpu/report/bar_line.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace strata::gpu_check {
namespace {

// 3 GB in 1 ms beside a copy of 4 TB/s: 75 %; the probe took 0.96 ms.
BarLine Example() {
  BarLine line;
  line.bar = "gather";
  line.name = "rows of 256 B, \"one\" a bag";
  line.bytes = 3e9;
  line.operations = 1e6;
  line.operation = "rows";
  line.ms = 1.0;
  line.probe_ms = 0.96;
  line.copy_bytes_per_s = 4e12;
  line.note = "half";
  return line;
}

TEST_CASE("a line says which of its bars it misses", "[gpu_check]") {
  BarLine line = Example();
  CHECK(OfCopy(line) == Approx(0.75));
  CHECK(OfProbe(line) == Approx(0.96));
  CHECK(MissedBars(line).empty());
  line.least_of_copy = 0.75;
  line.least_of_probe = 0.95;
  line.most_ms = 1.0;
  CHECK(MissedBars(line).empty());
  line.least_of_copy = 0.76;
  CHECK(MissedBars(line) == std::vector<std::string>{"75.0 % of copy, wanted 76 %"});
  line.least_of_probe = 0.97;
  line.most_ms = 0.5;
  CHECK(MissedBars(line).size() == 3);
}

TEST_CASE("a line is compared with another case, either way", "[gpu_check]") {
  BarLine line = Example();
  line.reference_ms = 0.96;
  CHECK(ChangeOf(line) == Approx(1 / 0.96 - 1));
  CHECK(MissedBars(line).empty());
  line.most_change = 0.05;
  CHECK(MissedBars(line).empty());
  line.reference_ms = 0.95;
  CHECK(MissedBars(line) ==
        std::vector<std::string>{"1.0000 ms against 0.9500 ms, wanted less than 5 % apart"});
  line.reference_ms = 1.06;
  CHECK(MissedBars(line).size() == 1);
  line.reference_ms = 1.05;
  CHECK(MissedBars(line).empty());
  line.reference_ms = 0;  // not measured
  CHECK(MissedBars(line).size() == 1);
}

TEST_CASE("what was not measured keeps no bar", "[gpu_check]") {
  BarLine line;
  CHECK(OfCopy(line) == 0);
  CHECK(OfProbe(line) == 0);
  CHECK(MissedBars(line).empty());
  line.least_of_copy = line.least_of_probe = line.most_ms = line.most_change = 0.1;
  CHECK(MissedBars(line).size() == 4);
}

TEST_CASE("a line survives its JSON", "[gpu_check]") {
  BarLine line = Example();
  line.least_of_copy = 0.8;
  line.least_of_probe = 0.95;
  line.most_ms = 2;
  line.reference_ms = 0.97;
  line.most_change = 0.03;
  const std::string json = BarLineJson(line);
  CHECK(json.find('\n') == std::string::npos);
  const auto back = ParseBarLine(json);
  REQUIRE(back.ok());
  CHECK(BarLineJson(*back) == json);
  CHECK(back->name == line.name);
  CHECK(back->probe_ms == line.probe_ms);
  CHECK(back->reference_ms == line.reference_ms);
  CHECK(back->most_change == line.most_change);

  CHECK_FALSE(ParseBarLine("{").ok());
  CHECK_FALSE(ParseBarLine("[]").ok());
  std::string wrong = json;
  wrong.replace(wrong.find("\"ms\""), 4, "\"mS\"");
  CHECK(ParseBarLine(wrong).status().message() == "a bar's line lacks the number ms");
  wrong = json;
  wrong.replace(wrong.find("\"gather\""), 8, "3");
  CHECK(ParseBarLine(wrong).status().message() == "a bar's line lacks the text bar");
}

}  // namespace
}  // namespace strata::gpu_check

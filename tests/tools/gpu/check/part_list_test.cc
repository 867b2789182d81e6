// The table of parts: its order, and that what it names is there.
#include "tools/gpu/check/part_list.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "tools/gpu/run_part.h"

namespace strata::gpu_check {
namespace {

TEST_CASE("parts come in the order of their kinds, each once", "[gpu_check]") {
  const std::vector<PartEntry> parts = AllParts();
  REQUIRE_FALSE(parts.empty());
  CHECK(parts.front().kind == PartKind::kDevice);
  CHECK(std::is_sorted(parts.begin(), parts.end(),
                       [](const PartEntry& a, const PartEntry& b) { return a.kind < b.kind; }));
  std::set<std::string> names;
  for (const PartEntry& part : parts) {
    INFO(part.name);
    CHECK(names.insert(part.name).second);
    CHECK(part.least_seconds > 0);
    CHECK(part.most_seconds >= part.least_seconds);
  }
  for (const char* name : {"test apply_test", "bar gather", "bar find", "bar find-or-insert",
                           "bar dlrm", "memcheck pool_test", "racecheck fm_test"}) {
    INFO(name);
    CHECK(names.count(name) == 1);
  }
}

TEST_CASE("what the least of all parts wants fits into the default budget", "[gpu_check]") {
  double least = 0;
  for (const PartEntry& part : AllParts()) least += part.missing.empty() ? part.least_seconds : 0;
  CHECK(least < 480 * 3 / 4);  // the rest is for those that take longer
}

TEST_CASE("every bar of the table is one that gpu_check has, and the other way round",
          "[gpu_check]") {
  std::vector<std::string> listed;
  for (const PartEntry& part : AllParts()) {
    if (part.kind == PartKind::kBar && part.missing.empty()) listed.push_back(part.program);
  }
  CHECK(listed == BarNames());
}

TEST_CASE("a bundle's tests are those of the table", "[gpu_check]") {
  std::set<std::string> labels;
  for (const PartEntry& part : AllParts()) {
    if (part.missing.empty() && !part.label.empty()) labels.insert(part.label);
  }
  const std::vector<std::string> listed = TestLabels();
  CHECK(listed.size() == labels.size());
  CHECK(std::set<std::string>(listed.begin(), listed.end()) == labels);
  CHECK(labels.count("//tests/ops/cuda/rows:pool_test") == 1);
}

}  // namespace
}  // namespace strata::gpu_check

// The table of parts: its order, and that what it names is there.
#include "tools/gpu/check/part_list.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tools/gpu/check/part_choice.h"
#include "tools/gpu/run_part.h"

namespace strata::gpu_check {
namespace {

TEST_CASE("mlp and dlrm come first, then parts in the order of their kinds, each once",
          "[gpu_check]") {
  const std::vector<PartEntry> parts = AllParts();
  REQUIRE(parts.size() > 3);
  CHECK(parts[0].kind == PartKind::kDevice);
  CHECK(parts[1].name == "bar mlp");
  CHECK(parts[2].name == "bar dlrm");
  CHECK(std::is_sorted(parts.begin() + 3, parts.end(),
                       [](const PartEntry& a, const PartEntry& b) { return a.kind < b.kind; }));
  std::set<std::string> names;
  for (const PartEntry& part : parts) {
    INFO(part.name);
    CHECK(names.insert(part.name).second);
    CHECK(part.least_seconds > 0);
    CHECK(part.most_seconds >= part.least_seconds);
  }
  for (const char* name :
       {"test apply_test", "test blas_test", "test server_tiers_test", "bar gather", "bar find",
        "bar find-or-insert", "bar dlrm", "memcheck pool_test", "racecheck fm_test"}) {
    INFO(name);
    CHECK(names.count(name) == 1);
  }
}

std::vector<std::string> Names(const PartChoice& choice) {
  const auto chosen = ChooseParts(AllParts(), choice);
  INFO(chosen.status());
  REQUIRE(chosen.ok());
  std::vector<std::string> names;
  for (const PartEntry& part : *chosen) names.push_back(part.name);
  return names;
}

std::string Problem(const PartChoice& choice) {
  const auto chosen = ChooseParts(AllParts(), choice);
  REQUIRE(chosen.status().code() == absl::StatusCode::kInvalidArgument);
  return std::string(chosen.status().message());
}

TEST_CASE("parts are chosen by kind, by name and by both", "[gpu_check]") {
  using Strings = std::vector<std::string>;
  const size_t all = AllParts().size();
  CHECK(Names({}).size() == all);
  CHECK(Names({"dlrm,mlp", ""}) == Strings{"device", "bar mlp", "bar dlrm"});
  CHECK(Names({"fm_test", ""}) ==
        Strings{"device", "test fm_test", "memcheck fm_test", "racecheck fm_test"});
  CHECK(Names({" memcheck fm_test , bar apply", ""}) ==
        Strings{"device", "bar apply", "memcheck fm_test"});
  CHECK(Names({"bar", "mlp, dlrm,find"}) ==
        Strings{"device", "bar gather", "bar apply", "bar coalesce", "bar find-or-insert"});
  CHECK(Names({"device", ""}) == Strings{"device"});
  for (const std::string& name : Names({"", "memcheck,racecheck,bar"})) {
    CHECK((name == "device" || name.rfind("test ", 0) == 0));
  }
  CHECK(Names({"", "mlp"}).size() == all - 1);
}

TEST_CASE("a word that means no part is told with those that do", "[gpu_check]") {
  const std::string problem = Problem({"mlp,mpl", ""});
  CHECK(problem.find("--parts: there is no part 'mpl'; give") == 0);
  CHECK(problem.find("test, bar, memcheck, racecheck") != std::string::npos);
  CHECK(problem.find("of: mlp, dlrm, gather, ") != std::string::npos);
  CHECK(problem.find("pool_test") != std::string::npos);
  CHECK(Problem({"", "mlp,"}).find("--skip: there is no part ''") == 0);
  CHECK(Problem({"bar pool_test", ""}).find("there is no part 'bar pool_test'") !=
        std::string::npos);
  CHECK(Problem({"", "device"}).find("--skip: all parts need the device") == 0);
  CHECK(Problem({"mlp", "bar"}).find("nothing is left") != std::string::npos);
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

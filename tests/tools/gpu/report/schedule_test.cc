// Which parts run within a budget, for how long, and what is reported when.
#include "tools/gpu/report/schedule.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace strata::gpu_check {
namespace {

// Parts that take a time of their own by a clock of the test's.
struct Stage {
  double now = 1000;
  std::vector<double> limits;
  std::vector<Report> told;
  size_t most_told = 100;  // after so many, results can be kept no more

  PlannedPart Part(const std::string& name, double least, double most, double takes,
                   PartState state = PartState::kPassed) {
    PlannedPart part;
    part.name = name;
    part.least_seconds = least;
    part.most_seconds = most;
    part.run = [this, takes, state](double limit) {
      limits.push_back(limit);
      now += takes;
      PartResult result;
      result.state = state;
      result.reason = state == PartState::kPassed ? "" : "its reason";
      return result;
    };
    return part;
  }
  Report Run(const std::vector<PlannedPart>& parts, double budget) {
    return RunParts(
        parts, budget, [this] { return now; },
        [this](const Report& report) {
          told.push_back(report);
          return told.size() < most_told ? absl::OkStatus() : absl::InternalError("a full disk");
        });
  }
};

TEST_CASE("a part leaves time for those after it", "[gpu_check]") {
  Stage stage;
  std::vector<PlannedPart> parts = {stage.Part("a", 5, 90, 0), stage.Part("b", 20, 30, 0),
                                    stage.Part("c", 15, 90, 0)};
  CHECK(LimitOf(parts, 0, 480) == 90);
  CHECK(LimitOf(parts, 0, 100) == 65);
  CHECK(LimitOf(parts, 0, 38) == 5);  // its own least goes first
  CHECK(LimitOf(parts, 0, 4.9) == 0);
  CHECK(LimitOf(parts, 1, 480) == 30);
  CHECK(LimitOf(parts, 2, 16) == 16);
  parts[1].missing = "no such thing";
  CHECK(LimitOf(parts, 0, 100) == 85);
}

TEST_CASE("nothing runs after a result that cannot be kept", "[gpu_check]") {
  Stage stage;
  stage.most_told = 2;
  const Report report = stage.Run(
      {stage.Part("a", 5, 50, 1), stage.Part("b", 5, 50, 1), stage.Part("c", 5, 50, 1)}, 100);
  CHECK(stage.limits.size() == 2);
  REQUIRE(report.parts.size() == 2);
  CHECK(report.parts[1].name == "b");
  CHECK_FALSE(report.finished);
}

TEST_CASE("parts run in order, and each result is told at once", "[gpu_check]") {
  Stage stage;
  std::vector<PlannedPart> parts = {
      stage.Part("a", 5, 50, 40), stage.Part("b", 5, 50, 10, PartState::kFailed),
      stage.Part("c", 5, 50, 1), stage.Part("d", 60, 90, 1), stage.Part("e", 5, 50, 2)};
  parts[2].missing = "no such thing";
  const Report report = stage.Run(parts, 100);
  CHECK(stage.limits == std::vector<double>{30, 5, 50});
  REQUIRE(report.parts.size() == 5);
  CHECK(report.parts[0].name == "a");
  CHECK(report.parts[0].seconds == 40);
  CHECK(report.parts[1].state == PartState::kFailed);
  CHECK(report.parts[1].reason == "its reason");
  CHECK(report.parts[2].state == PartState::kSkipped);
  CHECK(report.parts[2].reason == "no such thing");
  CHECK(report.parts[3].state == PartState::kSkipped);
  CHECK(report.parts[3].reason == "no time: 50.0 of 100.0 s are left, it wants 60 s");
  CHECK(report.parts[3].no_time);
  CHECK_FALSE(report.parts[2].no_time);
  CHECK(report.parts[4].state == PartState::kPassed);
  CHECK(report.proven);
  CHECK(report.budget_seconds == 100);
  CHECK(report.device_found);
  REQUIRE(stage.told.size() == 5);
  for (size_t i = 0; i < 5; ++i) {
    CHECK(stage.told[i].parts.size() == i + 1);
    CHECK(stage.told[i].finished == (i == 4));
  }
}

TEST_CASE("nothing runs without what all need", "[gpu_check]") {
  for (const PartState state : {PartState::kSkipped, PartState::kFailed}) {
    Stage stage;
    std::vector<PlannedPart> parts = {stage.Part("device", 5, 50, 1, state),
                                      stage.Part("b", 5, 50, 10)};
    parts[0].all_need_it = true;
    const Report report = stage.Run(parts, 100);
    CHECK(stage.limits.size() == 1);
    CHECK(report.parts[1].state == PartState::kSkipped);
    CHECK(report.parts[1].reason == (state == PartState::kFailed
                                         ? "without device, which failed"
                                         : "without device, which was skipped"));
    CHECK(report.device_found == (state == PartState::kFailed));
    CHECK(ExitCodeOf(report) == (state == PartState::kFailed ? 1 : 77));
  }
}

TEST_CASE("too small a budget proves nothing, and each part says so", "[gpu_check]") {
  Stage stage;
  std::vector<PlannedPart> parts = {stage.Part("device", 5, 50, 1), stage.Part("b", 10, 50, 1),
                                    stage.Part("c", 20, 50, 1)};
  parts[0].all_need_it = true;
  // Not even the device's: nobody looked for one.
  const Report none = stage.Run(parts, 4);
  CHECK(stage.limits.empty());
  for (const PartResult& part : none.parts) {
    CHECK(part.state == PartState::kSkipped);
    CHECK(part.no_time);
  }
  CHECK(none.parts[0].reason == "no time: 4.0 of 4.0 s are left, it wants 5 s");
  CHECK(none.parts[2].reason == "no time: without device, which was skipped");
  CHECK(none.device_found);
  CHECK(ExitCodeOf(none) == 3);
  // A device that was found, and nothing tried on it.
  const Report found = stage.Run(parts, 10.5);
  CHECK(stage.limits.size() == 1);
  CHECK(found.parts[0].state == PartState::kPassed);
  CHECK(found.parts[1].no_time);
  CHECK(found.parts[2].no_time);
  CHECK(ExitCodeOf(found) == 3);
  // Some of it.
  const Report some = stage.Run(parts, 12);
  CHECK(some.parts[1].state == PartState::kPassed);
  CHECK(some.parts[2].no_time);
  CHECK(ExitCodeOf(some) == 0);
}

}  // namespace
}  // namespace strata::gpu_check

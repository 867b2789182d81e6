#include "worker/eval/prediction_text.h"

#include <catch2/catch.hpp>
#include <limits>
#include <string>
#include <vector>

#include "proto/job/fields/task_spec.h"

namespace strata {
namespace {

TEST_CASE("a score that is no number has one text, whatever its bits", "[eval]") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<TaskSpec> tasks(2);
  tasks[1].kind = LabelKind::kReal;
  std::string text;
  AppendPredictions(tasks, PredictionColumns::kScores, {}, {nan, -nan, 0.25f, -infinity}, &text);
  CHECK(text == "nan,nan\n0.25,-inf\n");
}

TEST_CASE("a header has as many columns as the lines, whatever labels are called", "[eval]") {
  std::vector<TaskSpec> tasks(2);
  tasks[0].name = "clicked, yes";
  tasks[1].name = "so \"called\"";
  CHECK(PredictionHeader(tasks, PredictionColumns::kLabelsAndScores) ==
        "\"clicked, yes\",\"so \"\"called\"\"\",\"clicked, yes_score\",\"so "
        "\"\"called\"\"_score\"\n");
  tasks[1].name = "stars given";
  CHECK(PredictionHeader(tasks, PredictionColumns::kScores) ==
        "\"clicked, yes_score\",stars given_score\n");
}

}  // namespace
}  // namespace strata

#include "proto/job/evaluation_result.h"

#include <catch2/catch.hpp>
#include <limits>
#include <optional>

namespace strata {
namespace {

EvaluationResult Plain(uint64_t examples, uint64_t positives) {
  EvaluationResult result;
  result.set_examples(examples);
  result.set_positives(positives);
  result.set_auc(0.5);
  result.set_logloss(0.25);
  result.set_calibration(1.5);
  return result;
}

TEST_CASE("AUC needs both classes", "[evaluation]") {
  CHECK(AucOf(Plain(10, 4)) == 0.5);
  CHECK(AucOf(Plain(10, 0)) == std::nullopt);
  CHECK(AucOf(Plain(10, 10)) == std::nullopt);
  CHECK(AucOf(Plain(0, 0)) == std::nullopt);
  EvaluationResult earlier = Plain(10, 0);
  earlier.clear_positives();
  CHECK(AucOf(earlier) == 0.5);
}

TEST_CASE("the classes are those of lines that have the label", "[evaluation]") {
  EvaluationResult result = Plain(10, 4);
  TaskResult& task = *result.add_tasks();
  task.set_examples(4);
  task.set_loss(0.25);
  CHECK(AucOf(result) == std::nullopt);
  task.set_examples(5);
  CHECK(AucOf(result) == 0.5);
  task.set_examples(0);
  CHECK(AucOf(result) == std::nullopt);
  CHECK(LossOf(result) == std::nullopt);
  CHECK(CalibrationOf(result) == std::nullopt);
}

TEST_CASE("a first label that is not binary has a loss and no AUC", "[evaluation]") {
  EvaluationResult result = Plain(10, 4);
  result.clear_positives();
  result.add_tasks()->set_examples(10);
  CHECK(AucOf(result) == std::nullopt);
  CHECK(LossOf(result) == std::nullopt);  // its lines weigh nothing
  result.mutable_tasks(0)->set_loss(0.25);
  CHECK(LossOf(result) == 0.25);
}

TEST_CASE("what is no finite number is none", "[evaluation]") {
  EvaluationResult result = Plain(10, 4);
  result.set_logloss(-std::numeric_limits<double>::quiet_NaN());
  result.set_calibration(std::numeric_limits<double>::infinity());
  result.set_auc(std::numeric_limits<double>::quiet_NaN());
  CHECK(LossOf(result) == std::nullopt);
  CHECK(CalibrationOf(result) == std::nullopt);
  CHECK(AucOf(result) == std::nullopt);
  result.set_calibration(0);
  CHECK(CalibrationOf(result) == std::nullopt);
}

}  // namespace
}  // namespace strata

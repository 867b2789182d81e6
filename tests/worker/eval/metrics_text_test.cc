#include "worker/eval/metrics_text.h"

#include <catch2/catch.hpp>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace strata {
namespace {

using Json = nlohmann::json;

Json Members(const EvaluationResult& result) {
  return Json::parse("{\"step\": 1" + EvaluationMembers(result) + "}");
}

EvaluationResult Result() {
  EvaluationResult result;
  result.set_examples(10);
  result.set_positives(4);
  result.set_auc(0.75);
  result.set_logloss(0.25);
  return result;
}

TEST_CASE("numbers of JSON", "[metrics]") {
  CHECK(NumberText(0.5, 3) == "0.500");
  CHECK(NumberText(std::nullopt, 3) == "null");
  for (const double infinite :
       {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
        -std::numeric_limits<double>::quiet_NaN()}) {
    CHECK(NumberText(infinite, 3) == "null");
  }
}

TEST_CASE("an evaluation's members are JSON, whatever the model predicts", "[metrics]") {
  EvaluationResult result = Result();
  CHECK(Members(result) == Json{{"step", 1}, {"evalAuc", 0.75}, {"evalLogloss", 0.25}});
  result.set_logloss(-std::numeric_limits<double>::quiet_NaN());
  TaskResult& stars = *result.add_tasks();
  stars.set_label("stars");
  stars.set_examples(10);
  stars.set_loss(result.logloss());
  stars.set_mse(std::numeric_limits<double>::infinity());
  stars.set_mae(1.0 / 3 * 1e-9);  // to the bit
  const Json json = Members(result);
  CHECK(json["evalLogloss"].is_null());
  CHECK(json["evalTasks"]["stars"] ==
        Json{{"examples", 10}, {"loss", nullptr}, {"mse", nullptr}, {"mae", 1.0 / 3 * 1e-9}});
}

// A label without a name of its own is called as its column, which may be called anything.
TEST_CASE("labels are text of JSON, whatever their columns are called", "[metrics]") {
  EvaluationResult result = Result();
  const std::string name = "say \"yes\"\\no\t\x01 \u00e9";
  result.add_tasks()->set_label(name);
  CHECK(Members(result)["evalTasks"][name]["examples"] == 0);
}

TEST_CASE("what is not defined is null", "[metrics]") {
  EvaluationResult result = Result();
  result.set_positives(10);
  CHECK(Members(result)["evalAuc"].is_null());
  CHECK(Members(result)["evalLogloss"] == 0.25);
  result = Result();
  result.add_tasks()->set_label("click");  // no line has it
  CHECK(Members(result)["evalAuc"].is_null());
  CHECK(Members(result)["evalLogloss"].is_null());
}

}  // namespace
}  // namespace strata

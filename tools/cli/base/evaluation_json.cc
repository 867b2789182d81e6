#include "tools/cli/base/evaluation_json.h"

#include <cmath>

#include "proto/job/evaluation_result.h"

namespace strata {

using Json = nlohmann::ordered_json;

Json OrNull(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

Json PositivesOrNull(const EvaluationResult& e) {
  return e.has_positives() ? Json(e.positives()) : Json(nullptr);
}

Json TasksAsJson(const EvaluationResult& e) {
  Json tasks = Json::array();
  for (const TaskResult& t : e.tasks()) {
    const auto value = [](bool is, double number) {
      return OrNull(is ? std::optional<double>(number) : std::nullopt);
    };
    tasks.push_back(Json{{"label", t.label()},
                         {"examples", t.examples()},
                         {"weight", OrNull(t.weight())},
                         {"loss", value(t.has_loss(), t.loss())},
                         {"auc", value(t.has_auc(), t.auc())},
                         {"logloss", value(t.has_logloss(), t.logloss())},
                         {"ne", value(t.has_normalised_entropy(), t.normalised_entropy())},
                         {"calibration", value(t.has_calibration(), t.calibration())},
                         {"gauc", value(t.has_gauc(), t.gauc())},
                         {"mse", value(t.has_mse(), t.mse())},
                         {"mae", value(t.has_mae(), t.mae())},
                         {"positives", t.has_positives() ? Json(t.positives()) : Json(nullptr)}});
  }
  return tasks;
}

Json EvaluationAsJson(const EvaluationResult& e) {
  Json json{{"step", e.step()},
            {"auc", OrNull(AucOf(e))},
            {"logloss", OrNull(LossOf(e))},
            {"examples", e.examples()},
            {"positives", PositivesOrNull(e)},
            {"calibration", OrNull(CalibrationOf(e))}};
  if (e.tasks_size() > 0) json["tasks"] = TasksAsJson(e);
  return json;
}

}  // namespace strata

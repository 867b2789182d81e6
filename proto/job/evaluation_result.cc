#include "proto/job/evaluation_result.h"

#include <cmath>

namespace strata {
namespace {

std::optional<double> IfFinite(double value) {
  return std::isfinite(value) ? std::optional<double>(value) : std::nullopt;
}

// No line has the first label.
bool IsEmpty(const EvaluationResult& result) {
  return result.examples() == 0 || (!result.tasks().empty() && result.tasks(0).examples() == 0);
}

}  // namespace

std::optional<double> AucOf(const EvaluationResult& result) {
  if (IsEmpty(result)) return std::nullopt;
  // Results of earlier versions without tasks do not say how many are positive.
  if (!result.has_positives() && !result.tasks().empty()) return std::nullopt;
  const uint64_t examples = result.tasks().empty() ? result.examples() : result.tasks(0).examples();
  if (result.has_positives() && OneClass(result.positives(), examples)) return std::nullopt;
  return IfFinite(result.auc());
}

std::optional<double> LossOf(const EvaluationResult& result) {
  if (IsEmpty(result)) return std::nullopt;
  if (!result.tasks().empty() && !result.tasks(0).has_loss()) return std::nullopt;
  return IfFinite(result.logloss());
}

// 0 where labels sum to 0 (proto/strata/job.proto: a plain field); a model whose predictions sum to
// 0 is not told from that.
std::optional<double> CalibrationOf(const EvaluationResult& result) {
  if (IsEmpty(result) || result.calibration() == 0) return std::nullopt;
  return IfFinite(result.calibration());
}

}  // namespace strata

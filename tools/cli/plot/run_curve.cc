#include "tools/cli/plot/run_curve.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace strata {
namespace {

using Json = nlohmann::json;

// Of members in members, as lines have them: evalTasks, a label, a metric.
constexpr int kMostDepth = 4;
// Numbers beyond have no range on an axis.
constexpr double kMostValue = 1e300;

}  // namespace

const char* MemberOf(PlotX x) {
  return x == PlotX::kStep ? "step" : x == PlotX::kExamples ? "examples" : "unixMs";
}

struct RunCurve::Values {
  std::optional<double> step, examples, unix_ms, y;
  bool y_is_null = false;
};

namespace {

template <typename Visit>
void VisitNumbers(const Json& object, const std::string& before, int depth, const Visit& visit) {
  for (const auto& [key, value] : object.items()) {
    const std::string name = before + key;
    if (value.is_number()) {
      visit(name, std::optional<double>(value.template get<double>()));
    } else if (value.is_null()) {
      visit(name, std::optional<double>());
    } else if (value.is_object() && depth < kMostDepth) {
      VisitNumbers(value, name + ".", depth + 1, visit);
    }
  }
}

}  // namespace

void RunCurve::Count(Left& left) const {
  if (left.lines++ == 0) left.first = lines_;
}

void RunCurve::AddLongLine() {
  ++lines_;
  Count(damaged_);
}

void RunCurve::AddLine(absl::string_view line, bool complete) {
  ++lines_;
  const Json json = Json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    if (complete) return Count(damaged_);
    --lines_;
    return;
  }
  Values values;
  VisitNumbers(json, "", 1, [&](const std::string& name, std::optional<double> number) {
    if (names_.size() < kMostNames) names_.insert(name);
    if (name == "step") values.step = number;
    if (name == "examples") values.examples = number;
    if (name == "unixMs") values.unix_ms = number;
    if (name != o_.y) return;
    values.y = number;
    values.y_is_null = !number;
    names_.insert(name);
  });
  const std::optional<double> x = Across(values);
  if (values.y_is_null) Count(without_number_);
  if (!x || !values.y) return;
  const bool fits = std::abs(*x) <= kMostValue && std::abs(*values.y) <= kMostValue;
  if (!fits || (o_.log_x && *x <= 0) || (o_.log_y && *values.y <= 0)) return Count(not_drawable_);
  points_.Add({*x, *values.y});
}

std::optional<double> RunCurve::Across(const Values& v) {
  const bool goes_back = v.step && last_step_ && *v.step < *last_step_;
  if (goes_back && *v.step <= *first_step_) {
    Count(anew_);
    points_.Clear();
    first_step_ = v.step;
    last_time_ = last_examples_ = std::nullopt;
    seconds_ = earlier_examples_ = 0;
  } else if (goes_back) {
    Count(back_);
  }
  if (v.step) {
    if (!first_step_) first_step_ = v.step;
    last_step_ = v.step;
  }
  // A clock that was set back stands for a moment.
  if (v.unix_ms) {
    if (last_time_) seconds_ += std::max(0.0, *v.unix_ms - *last_time_) / 1000;
    last_time_ = v.unix_ms;
  }
  // The worker that counts them is another one since: it counts its own.
  if (v.examples) {
    if (last_examples_ && *v.examples < *last_examples_ && !goes_back) {
      earlier_examples_ += *last_examples_;
    }
    last_examples_ = v.examples;
  }
  if (o_.x == PlotX::kStep) return v.step;
  if (o_.x == PlotX::kExamples) {
    return v.examples ? std::optional(earlier_examples_ + *v.examples) : std::nullopt;
  }
  return v.unix_ms ? std::optional(seconds_) : std::nullopt;
}

}  // namespace strata

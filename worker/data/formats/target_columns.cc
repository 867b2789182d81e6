#include "worker/data/formats/target_columns.h"

#include <cmath>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/job/fields/label_spec.h"
#include "worker/data/formats/number_text.h"

namespace strata {
namespace {

constexpr double kMaxCount = 0x1p24;      // the whole numbers below are floats
constexpr double kMostRounding = 0x1p-8;  // of a weight: what is below 2^-17 may be off by more

}  // namespace

TargetColumns::TargetColumns(const JobSpec& spec, Labels labels)
    : tasks_(TasksOf(spec)),
      short_form_(spec.labels().empty()),
      optional_(labels == Labels::kOptional),
      weight_column_(spec.sample_weight()) {}

std::string TargetColumns::Where(size_t task) const {
  return short_form_ ? "spec.data.columns.label" : absl::StrCat("spec.labels[", task, "].column");
}

absl::Status TargetColumns::WithRemedy(const absl::Status& missing,
                                       const CsvColumns& columns) const {
  if (!optional_ || columns.header) return missing;
  std::vector<std::string> there;
  for (const TaskSpec& task : tasks_) {
    if (columns.Has(task.column)) there.push_back(task.column);
  }
  if (weighted() && columns.Has(weight_column_)) there.push_back(weight_column_);
  if (there.empty()) return missing;
  return absl::Status(
      missing.code(),
      absl::StrCat(missing.message(),
                   "; without a header what a line to score lacks may only lie behind all that the "
                   "model reads: keep column ",
                   absl::StrJoin(there, " and "), " in its place, and leave it empty"));
}

std::string TargetColumns::ParseLabel(size_t task, absl::string_view text, float* label) const {
  const absl::string_view number = absl::StripAsciiWhitespace(text);
  if (short_form_ && !(optional_ && number.empty())) {
    if (strata::ParseLabel(number, label)) return "";
    return absl::StrCat("column ", tasks_[task].column, ": label ", Quoted(text),
                        " is none of 0, 1, -1; spec.labels may name a number (kind: real, count), "
                        "or a label that lines may lack");
  }
  const TaskSpec& spec = tasks_[task];
  if (number.empty()) {
    *label = std::numeric_limits<float>::quiet_NaN();
    return "";
  }
  const auto wrong = [&](absl::string_view what) {
    return absl::StrCat("column ", spec.column, ": label ", spec.name, ": ", Quoted(text), " is ",
                        what);
  };
  if (spec.kind == LabelKind::kBinary) {
    return strata::ParseLabel(number, label) ? "" : wrong("none of 0, 1, -1; an empty one is none");
  }
  double exact = 0;  // a float would round to what may be a count
  const NumberError error = ParseReal(number, label);
  if (error == NumberError::kOutOfRange) {
    return absl::StrCat("column ", spec.column, ": label ", spec.name, ": ", Quoted(text), " ",
                        WhyNoReal(error));
  }
  if (error != NumberError::kNone || ParseDouble(number, &exact) != NumberError::kNone) {
    return wrong("not a finite number; leave it empty where there is none");
  }
  if (spec.kind == LabelKind::kReal) return "";
  if (exact >= 0 && exact <= kMaxCount && exact == std::floor(exact)) return "";
  return wrong("no count (a whole number, 0 to 16777216); mend it, or give the label kind real");
}

std::string TargetColumns::ParseWeight(absl::string_view text, float* weight) const {
  const absl::string_view number = absl::StripAsciiWhitespace(text);
  *weight = 1.0f;
  if (number.empty()) return "";
  const auto wrong = [&](absl::string_view what) {
    return absl::StrCat("column ", weight_column_, ": weight ", Quoted(text), " is ", what);
  };
  double exact = 0;
  const NumberError error = ParseDouble(number, &exact);
  if (error == NumberError::kOutOfRange) {
    return wrong(absl::StrCat("too large or too small; give 0, or 1e-5 to ", kMaxSampleWeight));
  }
  if (error != NumberError::kNone) return wrong("not a finite number; leave it empty for 1");
  if (exact < 0) return wrong("negative; give 0 to leave the line out");
  if (exact > kMaxSampleWeight) {
    return wrong(absl::StrCat("above ", kMaxSampleWeight, "; scale the weights of all lines"));
  }
  *weight = std::nearbyint(static_cast<float>(exact) * (1.0f / kWeightUnit)) * kWeightUnit;
  if (std::fabs(*weight - exact) <= exact * kMostRounding) return "";
  return wrong(absl::StrCat("too small: in units of 2^-24 it would be ", *weight,
                            "; scale the weights of all lines, or give 0 to leave the line out"));
}

}  // namespace strata

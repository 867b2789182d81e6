#include "proto/job/spec_checks.h"

#include <cmath>

#include "absl/strings/str_join.h"

namespace strata::spec {

absl::Status Bad(absl::string_view field, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", what));
}

absl::Status CheckChoice(absl::string_view field, absl::string_view value, Choices choices) {
  for (absl::string_view c : choices) {
    if (value == c) return absl::OkStatus();
  }
  if (value.empty()) {
    return Bad(field, absl::StrCat("is missing; give one of: ", absl::StrJoin(choices, ", ")));
  }
  return Bad(field, absl::StrCat("'", value, "' is not one of: ", absl::StrJoin(choices, ", ")));
}

absl::Status CheckRange(absl::string_view field, uint64_t value, uint64_t low, uint64_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return Bad(field,
             absl::StrCat(value, " is outside the limits; give a number from ", low, " to ", high));
}

absl::Status CheckReal(absl::string_view field, float value, float low, Low low_allowed,
                       float high) {
  const bool above = low_allowed == Low::kAllowed ? value >= low : value > low;
  if (std::isfinite(value) && above && value < high) return absl::OkStatus();
  return Bad(field, absl::StrCat(value, " is outside the limits; give a number ",
                                 low_allowed == Low::kAllowed ? "of at least " : "above ", low,
                                 " and below ", high));
}

}  // namespace strata::spec

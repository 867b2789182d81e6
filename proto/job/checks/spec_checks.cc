#include "proto/job/checks/spec_checks.h"

#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "proto/job/checks/shown.h"

namespace strata::spec {

absl::Status Bad(absl::string_view field, absl::string_view what) {
  return absl::InvalidArgumentError(ShownText(absl::StrCat(field, ": ", what)));
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

absl::Status CheckPath(absl::string_view field, absl::string_view path) {
  constexpr size_t kMostBytes = 4095;  // PATH_MAX of Linux without the zero at the end
  constexpr size_t kShownBytes = 60;
  if (path.size() > kMostBytes) {
    return Bad(field, absl::StrCat("'", absl::CHexEscape(path.substr(0, kShownBytes)), "...' has ",
                                   path.size(), " bytes; a path has at most ", kMostBytes));
  }
  for (const char c : path) {
    if (!absl::ascii_iscntrl(static_cast<unsigned char>(c))) continue;
    return Bad(field, absl::StrCat("'", absl::CHexEscape(path), "' has a control character (byte ",
                                   static_cast<int>(static_cast<unsigned char>(c)),
                                   "); name another file"));
  }
  return absl::OkStatus();
}

absl::Status CheckReal(absl::string_view field, float value, float low, Low low_allowed,
                       float high) {
  const bool above = low_allowed == Low::kAllowed ? value >= low : value > low;
  if (std::isfinite(value) && above && value < high) return absl::OkStatus();
  return Bad(field, absl::StrCat(ShownNumber(value), " is outside the limits; give a number ",
                                 low_allowed == Low::kAllowed ? "of at least " : "above ",
                                 ShownNumber(low), " and below ", ShownNumber(high)));
}

}  // namespace strata::spec

#include "tools/cli/data/scored_text.h"

#include "absl/strings/str_cat.h"
#include "tools/cli/base/job_text.h"

namespace strata {

std::string ScoredText(const PredictSummary& s) {
  std::string text = absl::StrCat("scored ", WithCommas(s.lines), " lines");
  if (s.bad_lines > 0) absl::StrAppend(&text, ", left out ", WithCommas(s.bad_lines), " bad ones");
  if (s.labelled == 0) return text + "; none has a label";
  const std::string measured = WithCommas(s.measured);
  if (s.measured_labelled == 0) {
    return absl::StrCat(text, "; none of the first ", measured, " has a label, and ",
                        WithCommas(s.labelled), " of the others; only the first ", measured,
                        " are measured");
  }
  if (s.measured < s.lines) absl::StrAppend(&text, "; of the first ", measured);
  if (s.measured_labelled < s.measured) {
    absl::StrAppend(&text, ", ", WithCommas(s.measured_labelled), " with a label");
  }
  return absl::StrCat(text, ": ", EvaluationText(s.result));
}

}  // namespace strata

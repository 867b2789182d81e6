// What libsvm's and libffm's lines have in common: a label, then tokens, parted by spaces and tabs;
// from '#' on is comment.
// Tested by tests/worker/data/formats/parsers_test.cc
// Tested by tests/worker/data/formats/formats_test.cc
#ifndef STRATA_WORKER_DATA_FORMATS_TOKEN_LINE_H_
#define STRATA_WORKER_DATA_FORMATS_TOKEN_LINE_H_

#include <cstddef>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "worker/data/formats/line_parser.h"
#include "worker/data/formats/number_text.h"
#include "worker/step/batch.h"

namespace strata {

// Why a feature's number is wrong.
std::string BadFeatureNumber(absl::string_view what, NumberError error, absl::string_view text);

// Reads the label and gives every further token to `take(token)`, which returns "" or why the line
// is bad. Where labels are optional, a line that begins with a feature (a token with a ':') has
// none: `label` is no number. A line without a token is blank. Does not append the example nor
// restore the batch.
template <typename Take>
LineOutcome ParseTokenLine(absl::string_view line, Labels labels, float* label, LineError* error,
                           Take take) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t'; };
  line = line.substr(0, line.find('#'));
  bool have_label = false;
  size_t at = 0;
  while (true) {
    while (at < line.size() && is_space(line[at])) ++at;
    if (at == line.size()) break;
    size_t end = at + 1;
    while (end < line.size() && !is_space(line[end])) ++end;
    const absl::string_view token = line.substr(at, end - at);
    std::string reason;
    if (!have_label && labels == Labels::kOptional && token.find(':') != token.npos) {
      *label = std::numeric_limits<float>::quiet_NaN();
      have_label = true;
    }
    if (have_label) {
      reason = take(token);
    } else if (!ParseLabel(token, label)) {
      reason = absl::StrCat("label ", Quoted(token), " is none of 0, 1, -1");
    }
    have_label = true;
    if (!reason.empty()) return BadLine(at + 1, std::move(reason), error);
    at = end;
  }
  return have_label ? LineOutcome::kExample : LineOutcome::kBlank;
}

}  // namespace strata

#endif  // STRATA_WORKER_DATA_FORMATS_TOKEN_LINE_H_

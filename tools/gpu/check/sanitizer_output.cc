#include "tools/gpu/check/sanitizer_output.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace strata::gpu_check {
namespace {

constexpr absl::string_view kMark = "========= ";

bool FirstNumber(absl::string_view text, uint64_t* number) {
  const std::string word(text.substr(0, text.find(' ')));
  return absl::SimpleAtoi(word, number);
}

// Lines that say nothing wrong.
bool IsOrdinary(absl::string_view line) {
  return line.empty() || absl::StartsWith(line, "COMPUTE-SANITIZER") ||
         absl::StartsWith(line, "Target application returned");
}

}  // namespace

absl::StatusOr<SanitizerCounts> CountErrors(absl::string_view output) {
  SanitizerCounts counts;
  bool summary = false;
  for (absl::string_view line : absl::StrSplit(output, '\n')) {
    if (!absl::ConsumePrefix(&line, kMark)) continue;
    if (absl::ConsumePrefix(&line, "ERROR SUMMARY: ")) {
      summary = FirstNumber(line, &counts.errors) || summary;
    } else if (absl::ConsumePrefix(&line, "RACECHECK SUMMARY: ")) {
      summary = FirstNumber(line, &counts.hazards) || summary;
    } else if (counts.first.empty() && !IsOrdinary(line)) {
      counts.first = std::string(line);
    }
  }
  if (!summary) {
    return absl::NotFoundError(counts.first.empty() ? "it ended without a summary" : counts.first);
  }
  if (counts.errors == 0 && counts.hazards == 0) counts.first.clear();
  return counts;
}

}  // namespace strata::gpu_check

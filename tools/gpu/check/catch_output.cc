#include "tools/gpu/check/catch_output.h"

#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace strata::gpu_check {
namespace {

constexpr absl::string_view kSkipped = "SKIPPED: ";

// The number that ends right before ` word`, "2" of "| 2 passed |". 0 when there is none.
uint32_t NumberBefore(absl::string_view line, absl::string_view word) {
  for (absl::string_view piece : absl::StrSplit(line, absl::ByAnyChar("|:("))) {
    piece = absl::StripAsciiWhitespace(piece);
    const std::vector<absl::string_view> words = absl::StrSplit(piece, absl::MaxSplits(' ', 1));
    uint32_t number = 0;
    if (words.size() == 2 && absl::StartsWith(words[1], word) &&
        absl::SimpleAtoi(words[0], &number)) {
      return number;
    }
  }
  return 0;
}

// Cases of "All tests passed (12 assertions in 3 test cases)".
uint32_t CasesOfAllPassed(absl::string_view line) {
  const size_t at = line.rfind(" in ");
  if (at == absl::string_view::npos) return 0;
  return NumberBefore(line.substr(at + 4), "test case");
}

}  // namespace

absl::StatusOr<CaseCounts> CountCases(absl::string_view output) {
  CaseCounts counts;
  bool summary = false;
  std::set<absl::string_view> skipped, wholly_skipped;
  for (absl::string_view line : absl::StrSplit(output, '\n')) {
    if (absl::StartsWith(line, "All tests passed (")) {
      counts.passed = CasesOfAllPassed(line);
      summary = true;
    } else if (absl::StartsWith(line, "test cases: ")) {
      counts.passed = NumberBefore(line, "passed");
      counts.failed = NumberBefore(line, "failed");
      summary = true;
    } else if (absl::StartsWith(line, "No tests ran")) {
      summary = true;
    } else if (absl::ConsumePrefix(&line, kSkipped)) {
      skipped.insert(line);
      if (!absl::StrContains(line, ", on a device: ")) wholly_skipped.insert(line);
    }
  }
  if (!summary) return absl::NotFoundError("it ended without Catch2's summary");
  counts.skipped = static_cast<uint32_t>(skipped.size());
  const auto not_run = static_cast<uint32_t>(wholly_skipped.size());
  counts.passed -= counts.passed < not_run ? counts.passed : not_run;
  return counts;
}

std::string FirstFailure(absl::string_view output) {
  const std::vector<absl::string_view> lines = absl::StrSplit(output, '\n');
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!absl::StrContains(lines[i], ": FAILED:")) continue;
    return absl::StrCat(lines[i], i + 1 < lines.size() ? " " : "",
                        i + 1 < lines.size() ? absl::StripAsciiWhitespace(lines[i + 1]) : "");
  }
  return "";
}

}  // namespace strata::gpu_check

#include "tools/gpu/check/part_output.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace strata::gpu_check {
namespace {

constexpr absl::string_view kBar = "bar ", kFact = "fact ", kPart = ": ";

}  // namespace

std::string BarText(const BarLine& line) { return absl::StrCat(kBar, BarLineJson(line), "\n"); }

std::string FactText(absl::string_view name, absl::string_view value) {
  return absl::StrCat(kFact, name, kPart, value, "\n");
}

PartResult ParsePartOutput(absl::string_view output) {
  PartResult result;
  // A last line without an end was cut when the part was killed.
  const size_t end = output.rfind('\n');
  if (end == absl::string_view::npos) return result;
  for (absl::string_view line : absl::StrSplit(output.substr(0, end), '\n')) {
    if (absl::ConsumePrefix(&line, kBar)) {
      auto bar = ParseBarLine(line);
      if (bar.ok()) {
        result.lines.push_back(*std::move(bar));
      } else {
        result.state = PartState::kFailed;
        result.reason = std::string(bar.status().message());
      }
    } else if (absl::ConsumePrefix(&line, kFact)) {
      const std::pair<absl::string_view, absl::string_view> fact =
          absl::StrSplit(line, absl::MaxSplits(kPart, 1));
      result.facts.emplace_back(fact.first, fact.second);
    }
  }
  return result;
}

std::string LastWords(absl::string_view output) {
  std::string words;
  for (absl::string_view line : absl::StrSplit(output, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || absl::StartsWith(line, kBar) || absl::StartsWith(line, kFact)) continue;
    words = std::string(line);
  }
  return words;
}

}  // namespace strata::gpu_check

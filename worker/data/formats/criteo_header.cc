#include "worker/data/formats/criteo_header.h"

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "worker/data/formats/csv_cursor.h"
#include "worker/data/formats/number_text.h"

namespace strata {
namespace {

constexpr uint32_t kAbsent = CriteoLayout::kNoColumn;

absl::Status Wrong(const std::string& what) {
  return absl::InvalidArgumentError(
      absl::StrCat("the header of criteo_csv: ", what,
                   "; it names Label, I1 to I13, C1 to C26 and perhaps Id (for other columns use "
                   "spec.data.format csv)"));
}

}  // namespace

CriteoLayout CriteoTsvLayout(bool label) {
  CriteoLayout layout;
  if (!label) layout.label = CriteoLayout::kNoColumn;
  layout.columns = label ? 1 : 0;
  for (uint32_t& integer : layout.integers) integer = layout.columns++;
  for (uint32_t& category : layout.categories) category = layout.columns++;
  return layout;
}

absl::StatusOr<CriteoLayout> ParseCriteoHeader(absl::string_view header, Labels labels) {
  CriteoLayout layout;
  layout.separator = ',';
  layout.quotes = true;
  layout.label = kAbsent;
  layout.integers.fill(kAbsent);
  layout.categories.fill(kAbsent);
  uint32_t id = kAbsent;
  std::map<std::string, uint32_t*> wanted = {{"id", &id}, {"label", &layout.label}};
  for (uint32_t i = 0; i < kCriteoIntegers; ++i) {
    wanted[absl::StrCat("i", i + 1)] = &layout.integers[i];
  }
  for (uint32_t f = 0; f < kCriteoCategories; ++f) {
    wanted[absl::StrCat("c", f + 1)] = &layout.categories[f];
  }
  if (!header.empty() && header.back() == '\r') header.remove_suffix(1);
  CsvCursor cursor(header, ',');
  absl::string_view field;
  std::string scratch;
  while (cursor.Next(&field, &scratch)) {
    const absl::string_view name = absl::StripAsciiWhitespace(field);
    const auto found = wanted.find(absl::AsciiStrToLower(name));
    if (found == wanted.end()) {
      return Wrong(absl::StrCat("column ", layout.columns + 1, ", ", Quoted(name), ", is unknown"));
    }
    if (*found->second != kAbsent) {
      return Wrong(
          absl::StrCat("column ", layout.columns + 1, ", ", Quoted(name), ", is there twice"));
    }
    *found->second = layout.columns++;
  }
  if (cursor.error() != nullptr) {
    return Wrong(absl::StrCat("column ", layout.columns + 1, ": ", cursor.error()));
  }
  if (layout.label == kAbsent && labels == Labels::kRequired)
    return Wrong("column Label is missing");
  for (uint32_t i = 0; i < kCriteoIntegers; ++i) {
    if (layout.integers[i] == kAbsent) return Wrong(absl::StrCat("column I", i + 1, " is missing"));
  }
  for (uint32_t f = 0; f < kCriteoCategories; ++f) {
    if (layout.categories[f] == kAbsent) {
      return Wrong(absl::StrCat("column C", f + 1, " is missing"));
    }
  }
  return layout;
}

}  // namespace strata

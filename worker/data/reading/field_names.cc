#include "worker/data/reading/field_names.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace strata {

std::vector<std::string> FieldNames(const DataSpec& data) {
  constexpr int kCategories = 26, kIntegers = 13;
  std::vector<std::string> names;
  if (data.format() == "csv") {
    names.assign(data.columns().categorical().begin(), data.columns().categorical().end());
    for (const MultiValuedColumn& c : data.columns().multi_valued()) names.push_back(c.column());
  } else if (absl::StartsWith(data.format(), "criteo")) {
    for (int i = 1; i <= kCategories; ++i) names.push_back(absl::StrCat("C", i));
    const bool buckets = data.integer_features() == "bucket";
    for (int i = 1; buckets && i <= kIntegers; ++i) names.push_back(absl::StrCat("I", i));
  }
  return names;
}

std::optional<uint32_t> FieldNumber(const DataSpec& data, const std::string& name) {
  const std::vector<std::string> names = FieldNames(data);
  const auto at = std::find(names.begin(), names.end(), name);
  if (name.empty() || at == names.end()) return std::nullopt;
  return static_cast<uint32_t>(at - names.begin());
}

}  // namespace strata

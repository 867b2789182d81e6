// Where Criteo's columns stand on a line.
// Tested by tests/worker/data/formats/parsers_test.cc
// Tested by tests/worker/data/index/index_test.cc
#ifndef STRATA_WORKER_DATA_FORMATS_CRITEO_HEADER_H_
#define STRATA_WORKER_DATA_FORMATS_CRITEO_HEADER_H_

#include <array>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/data/formats/line_parser.h"

namespace strata {

inline constexpr uint32_t kCriteoIntegers = 13;
inline constexpr uint32_t kCriteoCategories = 26;
// An Id may stand beside label, integers and categories.
inline constexpr uint32_t kMaxCriteoColumns = 2 + kCriteoIntegers + kCriteoCategories;

// Numbers of columns, from 0.
struct CriteoLayout {
  static constexpr uint32_t kNoColumn = UINT32_MAX;

  char separator = '\t';
  bool quotes = false;  // fields may be quoted as in csv
  uint32_t columns = 0;
  uint32_t label = 0;  // kNoColumn: lines have none
  std::array<uint32_t, kCriteoIntegers> integers{};
  std::array<uint32_t, kCriteoCategories> categories{};
};

// Tab-separated: label, unless there is none, I1..I13, C1..C26.
CriteoLayout CriteoTsvLayout(bool label);

// Comma-separated, in the order of the header: Label, I1..I13 and C1..C26, each once, and perhaps
// Id, which is not used; upper and lower case are the same. INVALID_ARGUMENT names the column that
// is unknown, missing or there twice. Label may be missing where it is optional.
absl::StatusOr<CriteoLayout> ParseCriteoHeader(absl::string_view header, Labels labels);

}  // namespace strata

#endif  // STRATA_WORKER_DATA_FORMATS_CRITEO_HEADER_H_

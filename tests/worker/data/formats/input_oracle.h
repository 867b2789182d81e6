// What must hold of any bytes that are given to a line parser or a decompressor: the oracle of the
// fuzz targets and of the property tests.
#ifndef STRATA_TESTS_WORKER_DATA_FORMATS_INPUT_ORACLE_H_
#define STRATA_TESTS_WORKER_DATA_FORMATS_INPUT_ORACLE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace strata::testing {

enum class LineFormat : uint8_t {
  kCriteo,
  kCriteoBucket,
  kCriteoCsv,
  kLibsvm,
  kLibffm,
  kCsv,
  kCsvMultiValued,
};
inline constexpr int kLineFormats = 7;

// A good line of the format, to mutate.
std::string GoodLine(LineFormat format);

struct LineVerdict {
  std::string complaint;  // empty: all is well
  bool example = false;
  bool bad = false;
};

// A good line makes an example whose arrays fit together, with finite numbers and ascending fields
// below the limit, and two good lines make the two examples side by side; a bad one leaves the
// batch as it was and names a column of the line.
LineVerdict JudgeLine(LineFormat format, absl::string_view line);

// The same outcome and text whether a file comes whole or in pieces. Empty, or what is wrong.
std::string JudgeCompressed(absl::string_view file);

}  // namespace strata::testing

#endif  // STRATA_TESTS_WORKER_DATA_FORMATS_INPUT_ORACLE_H_

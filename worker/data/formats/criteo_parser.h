// Criteo lines: label, 13 integers, 26 categories; parted by tabs, or by commas below a header.
// Tested by tests/worker/data/formats/parsers_test.cc
// Tested by tests/worker/data/formats/formats_test.cc
#ifndef STRATA_WORKER_DATA_FORMATS_CRITEO_PARSER_H_
#define STRATA_WORKER_DATA_FORMATS_CRITEO_PARSER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/data/formats/line_parser.h"

namespace strata {

enum class IntegerFeatures : uint8_t {
  kDense,   // ln(1 + max(x, 0)) as a number; missing is 0. fields = 26, numeric = 13
  kBucket,  // one more category each; fields = 39, numeric = 0
};

// Features stand in the order C1..C26 (fields 0..25), then with kBucket I1..I13 (fields 26..38).
// Keys: feature_hash.h over the category's bytes; a missing category is the empty string. Integers
// may be negative.
std::unique_ptr<LineParser> MakeCriteoParser(IntegerFeatures integers, uint64_t hash_seed);

// To score: a label may be empty, and where `first_line`, the first of the input, has one column
// less, no line has a label.
std::unique_ptr<LineParser> MakeCriteoScoringParser(absl::string_view first_line,
                                                    IntegerFeatures integers, uint64_t hash_seed);

// The same columns, comma-separated, in the order of `header` (criteo_header.h); fields may be
// quoted, and integers may end in ".0". A row gives the same features as its line in the
// tab-separated form. Where labels are optional, the column may be missing or empty.
// INVALID_ARGUMENT names the column of the header.
absl::StatusOr<std::unique_ptr<LineParser>> MakeCriteoCsvParser(absl::string_view header,
                                                                IntegerFeatures integers,
                                                                uint64_t hash_seed,
                                                                Labels labels = Labels::kRequired);

// ln(1 + max(x, 0)), rounded to float.
float CriteoDense(int64_t x);

// The text that is hashed for an integer in bucket mode, as in the winning entry of Criteo's 2014
// contest (Juan et al.): x > 2: floor(ln(x)^2) in decimal, else "SP" and x in decimal. A missing
// integer is the empty string.
std::string CriteoBucket(int64_t x);

}  // namespace strata

#endif  // STRATA_WORKER_DATA_FORMATS_CRITEO_PARSER_H_

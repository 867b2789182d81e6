#include "worker/data/parser_factory.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "worker/data/criteo_parser.h"
#include "worker/data/csv_parser.h"
#include "worker/data/libsvm_parser.h"

namespace strata {

absl::StatusOr<std::unique_ptr<LineParser>> MakeLineParser(const DataSpec& data,
                                                           const DataShape& shape,
                                                           absl::string_view first_line,
                                                           uint64_t hash_seed) {
  if (data.format() == "criteo") {
    if (!data.integer_features().empty() && data.integer_features() != "dense" &&
        !HasBuckets(data)) {
      return absl::InvalidArgumentError(absl::StrCat("spec.data.integerFeatures: \"",
                                                     data.integer_features(),
                                                     "\" is neither dense nor bucket"));
    }
    return MakeCriteoParser(HasBuckets(data) ? IntegerFeatures::kBucket : IntegerFeatures::kDense,
                            hash_seed);
  }
  if (data.format() == "libfm" || data.format() == "libsvm") {
    return MakeLibsvmParser(shape.fields());
  }
  if (data.format() == "csv") return MakeCsvParser(data.columns(), first_line, hash_seed);
  return absl::InvalidArgumentError(absl::StrCat("spec.data.format: \"", data.format(),
                                                 "\" is none of criteo, libfm, libsvm, csv"));
}

bool HasBuckets(const DataSpec& data) { return data.integer_features() == "bucket"; }

bool HasHeader(const DataSpec& data) {
  return data.format() == "csv" && (!data.columns().has_header() || data.columns().header());
}

}  // namespace strata

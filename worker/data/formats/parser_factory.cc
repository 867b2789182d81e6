#include "worker/data/formats/parser_factory.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/job/fields/field_plan.h"
#include "worker/data/formats/criteo_header.h"
#include "worker/data/formats/criteo_parser.h"
#include "worker/data/formats/csv_parser.h"
#include "worker/data/formats/fields_parser.h"
#include "worker/data/formats/libffm_parser.h"
#include "worker/data/formats/libsvm_parser.h"

namespace strata {

namespace {

absl::StatusOr<std::unique_ptr<LineParser>> MakeParser(const JobSpec& spec, const DataShape& shape,
                                                       absl::string_view first_line,
                                                       const Vocabularies& vocabularies,
                                                       Labels labels) {
  const DataSpec& data = spec.data();
  const uint64_t hash_seed = spec.model().hash_seed();
  const std::string& format = data.format();
  if (IsCriteo(data)) {
    if (!data.integer_features().empty() && data.integer_features() != "dense" &&
        !HasBuckets(data)) {
      return absl::InvalidArgumentError(absl::StrCat("spec.data.integerFeatures: \"",
                                                     data.integer_features(),
                                                     "\" is neither dense nor bucket"));
    }
    const auto integers = HasBuckets(data) ? IntegerFeatures::kBucket : IntegerFeatures::kDense;
    if (format == "criteo_csv") {
      return MakeCriteoCsvParser(first_line, integers, hash_seed, labels);
    }
    if (labels == Labels::kRequired) return MakeCriteoParser(integers, hash_seed);
    return MakeCriteoScoringParser(first_line, integers, hash_seed);
  }
  if (format == "libfm" || format == "libsvm") return MakeLibsvmParser(shape.fields(), labels);
  if (format == "libffm") return MakeLibffmParser(shape.fields(), labels);
  if (format == "csv" && !spec.fields().empty()) {
    return MakeFieldsParser(spec, first_line, vocabularies, labels, shape);
  }
  if (format == "csv") return MakeCsvParser(spec, first_line, labels, shape);
  return absl::InvalidArgumentError(
      absl::StrCat("spec.data.format: \"", format,
                   "\" is none of criteo, criteo_csv, libfm, libsvm, libffm, csv"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<LineParser>> MakeLineParser(const JobSpec& spec,
                                                           const DataShape& shape,
                                                           absl::string_view first_line,
                                                           const Vocabularies& vocabularies) {
  return MakeParser(spec, shape, first_line, vocabularies, Labels::kRequired);
}

absl::StatusOr<std::unique_ptr<LineParser>> MakeScoringParser(const JobSpec& spec,
                                                              const DataShape& shape,
                                                              absl::string_view first_line,
                                                              const Vocabularies& vocabularies) {
  return MakeParser(spec, shape, first_line, vocabularies, Labels::kOptional);
}

std::optional<DataShape> FixedShape(const JobSpec& spec) {
  DataShape shape;
  if (IsCriteo(spec.data())) {
    const bool buckets = HasBuckets(spec.data());
    shape.set_fields(buckets ? kCriteoCategories + kCriteoIntegers : kCriteoCategories);
    shape.set_numeric(buckets ? 0 : kCriteoIntegers);
    return shape;
  }
  if (spec.data().format() != "csv") return std::nullopt;
  const FieldsPlan plan = PlanFields(spec);
  shape.set_fields(plan.features);
  shape.set_numeric(plan.numbers);
  return shape;
}

bool IsCriteo(const DataSpec& data) {
  return data.format() == "criteo" || data.format() == "criteo_csv";
}

bool NeedsFirstLine(const DataSpec& data) {
  return data.format() == "csv" || data.format() == "criteo_csv";
}

bool HasBuckets(const DataSpec& data) { return data.integer_features() == "bucket"; }

bool HasHeader(const DataSpec& data) {
  if (data.format() == "criteo_csv") return true;
  return data.format() == "csv" && (!data.columns().has_header() || data.columns().header());
}

char ColumnDelimiter(const DataSpec& data) {
  const std::string& delimiter = data.columns().delimiter();
  if (data.format() != "csv" || delimiter.empty()) return ',';
  return delimiter == "\\t" ? '\t' : delimiter[0];
}

}  // namespace strata

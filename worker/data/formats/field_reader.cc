#include "worker/data/formats/field_reader.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "ops/natural_log.h"
#include "worker/data/formats/feature_hash.h"
#include "worker/data/formats/number_text.h"

namespace strata {
namespace {

// Calls take(part) for each part of `text` between separators that is not empty, until take says
// what is wrong; returns that.
template <typename Take>
std::string ForParts(absl::string_view text, char separator, Take take) {
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    if (end > 0) {
      std::string reason = take(text.substr(0, end));
      if (!reason.empty()) return reason;
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return "";
}

double Transformed(const FieldTransform& t, double x) {
  switch (t.type) {
    case TransformType::kLog:
      return x > 0 ? ops::NaturalLog(1.0 + x) : 0.0;
    case TransformType::kStandardise:
      return (x - t.mean) / t.deviation;
    case TransformType::kClip:
      return std::clamp(x, t.min, t.max);
    case TransformType::kNone:
    case TransformType::kBucketise:  // becomes a key
      return x;
  }
  return x;
}

// By the number of bounds that are not above.
std::vector<uint64_t> BucketKeys(const FieldTransform& t, uint64_t seed) {
  std::vector<uint64_t> keys;
  if (t.type != TransformType::kBucketise) return keys;
  double lower = -std::numeric_limits<double>::infinity();
  for (const double bound : t.bounds) {
    keys.push_back(BucketKey(seed, lower, bound));
    lower = bound;
  }
  keys.push_back(BucketKey(seed, lower, std::numeric_limits<double>::infinity()));
  return keys;
}

}  // namespace

uint64_t SeedOf(const FieldPlan& field) {
  return field.seed_name.empty() ? FieldSeed(field.hash_seed, field.number)
                                 : NamedFieldSeed(field.hash_seed, field.seed_name);
}

FieldReader::FieldReader(FieldPlan plan, std::shared_ptr<const Vocabulary> vocabulary)
    : plan_(std::move(plan)),
      seed_(SeedOf(plan_)),
      bucket_keys_(BucketKeys(plan_.transform, seed_)),
      vocabulary_(std::move(vocabulary)) {}

std::string FieldReader::NotANumber(absl::string_view text, NumberError error) const {
  if (plan_.default_value && absl::StripAsciiWhitespace(text).empty()) {
    return absl::StrCat("column ", plan_.column, " is empty, and ", Quoted(*plan_.default_value),
                        ", the defaultValue of field ", plan_.name, ", ", WhyNoReal(error));
  }
  return absl::StrCat("column ", plan_.column, ": ", Quoted(text), " ", WhyNoReal(error));
}

std::string FieldReader::ReadNumber(absl::string_view text, float* out) const {
  absl::string_view number = absl::StripAsciiWhitespace(text);
  if (number.empty() && plan_.default_value) number = *plan_.default_value;
  *out = 0;
  if (number.empty()) return "";
  if (plan_.transform.type == TransformType::kNone) {
    const NumberError error = ParseReal(number, out);
    return error == NumberError::kNone ? "" : NotANumber(text, error);
  }
  double x = 0;
  if (const NumberError e = ParseDouble(number, &x); e != NumberError::kNone) {
    return NotANumber(text, e);
  }
  *out = static_cast<float>(Transformed(plan_.transform, x));
  if (std::isfinite(*out)) return "";
  return absl::StrCat("column ", plan_.column, ": ", Quoted(number), " becomes ", *out,
                      " by the transform of field ", plan_.name);
}

uint64_t FieldReader::KeyOf(absl::string_view value) const {
  if (value.empty() && !bucket_keys_.empty()) return MissingBucketKey(seed_);
  if (vocabulary_ == nullptr) return FeatureKey(seed_, value);
  if (value.empty()) return VocabularyKey(seed_, 0);
  const uint64_t line = vocabulary_->LineOf(value);
  if (line > 0) return VocabularyKey(seed_, line);
  const uint32_t buckets = plan_.vocabulary->out_of_vocabulary;
  const uint64_t bucket = static_cast<uint64_t>(
      (static_cast<unsigned __int128>(FeatureKey(seed_, value)) * buckets) >> 64);
  return VocabularyKey(seed_, kLastVocabularyKey - bucket);
}

bool FieldReader::IsShared(uint64_t key) const {
  if (vocabulary_ == nullptr) return false;
  return (key & kLastVocabularyKey) > kLastVocabularyKey - plan_.vocabulary->out_of_vocabulary;
}

std::optional<uint64_t> FieldReader::LineOf(absl::string_view value) const {
  if (vocabulary_ == nullptr) return std::nullopt;
  return vocabulary_->LineOf(value);
}

uint64_t FieldReader::KeyOfBucket(double number) const {
  const std::vector<double>& bounds = plan_.transform.bounds;
  const auto above = std::upper_bound(bounds.begin(), bounds.end(), number);
  return bucket_keys_[static_cast<size_t>(above - bounds.begin())];
}

void FieldReader::Append(uint64_t key, float value, Batch* batch) const {
  batch->keys.push_back(key);
  batch->values.push_back(value);
  batch->fields.push_back(plan_.number);
}

std::string FieldReader::AppendBucket(absl::string_view text, Batch* batch) const {
  absl::string_view number = absl::StripAsciiWhitespace(text);
  if (number.empty() && plan_.default_value) number = *plan_.default_value;
  double x = 0;
  if (!number.empty()) {
    if (const NumberError e = ParseDouble(number, &x); e != NumberError::kNone) {
      return NotANumber(text, e);
    }
  }
  Append(number.empty() ? KeyOf("") : KeyOfBucket(x), 1.0f, batch);
  return "";
}

std::string FieldReader::AppendWeighted(absl::string_view part, Batch* batch) const {
  float weight = 1.0f;
  absl::string_view value = part;
  const size_t at = plan_.weight_separator == 0 ? part.npos : part.rfind(plan_.weight_separator);
  if (at != part.npos) {
    value = part.substr(0, at);
    if (value.empty()) {
      return absl::StrCat("column ", plan_.column, ": ", Quoted(part),
                          " is a weight without a value");
    }
    if (const NumberError e = ParseReal(part.substr(at + 1), &weight); e != NumberError::kNone) {
      return absl::StrCat("column ", plan_.column, ": the weight of ", Quoted(part), " ",
                          WhyNoReal(e));
    }
    if (weight < 0 && plan_.pooling == FieldPooling::kMean) {
      return absl::StrCat("column ", plan_.column, ": the weight of ", Quoted(part),
                          " is negative, and field ", plan_.name,
                          " divides by their sum (pooling: mean); sum takes any sign");
    }
  }
  Append(KeyOf(value), weight, batch);
  return "";
}

std::string FieldReader::DivideBySum(size_t first, Batch* batch) const {
  double sum = 0;
  for (size_t i = first; i < batch->values.size(); ++i) sum += batch->values[i];
  if (sum == 0.0) {
    return absl::StrCat("column ", plan_.column, ": the weights have the sum 0, by which field ",
                        plan_.name, " divides (pooling: mean)");
  }
  for (size_t i = first; i < batch->values.size(); ++i) {
    batch->values[i] = static_cast<float>(batch->values[i] / sum);
  }
  return "";
}

std::string FieldReader::AppendValues(absl::string_view text, Batch* batch) const {
  const size_t first = batch->keys.size();
  std::string reason = ForParts(
      text, plan_.separator, [&](absl::string_view part) { return AppendWeighted(part, batch); });
  if (!reason.empty()) return reason;
  if (batch->keys.size() == first && plan_.default_value) {
    Append(KeyOf(*plan_.default_value), 1.0f, batch);
  }
  const bool mean = plan_.pooling == FieldPooling::kMean && batch->keys.size() > first;
  return mean ? DivideBySum(first, batch) : "";
}

std::string FieldReader::AppendSequence(absl::string_view text, Batch* batch) const {
  uint64_t count = 0;
  ForParts(text, plan_.separator, [&](absl::string_view) {
    ++count;
    return std::string();
  });
  if (count == 0 && plan_.default_value) {
    Append(KeyOf(*plan_.default_value), 1.0f, batch);
    return "";
  }
  const uint64_t most = plan_.max_length;
  if (count > most && plan_.truncation == Truncation::kNever) {
    return absl::StrCat("column ", plan_.column, ": ", count, " values, and sequence ", plan_.name,
                        " has at most ", most,
                        "; raise its maxLength, or set truncate to oldest or newest");
  }
  const uint64_t begin = count > most && plan_.truncation == Truncation::kOldest ? count - most : 0;
  uint64_t number = 0;
  return ForParts(text, plan_.separator, [&](absl::string_view part) {
    if (number >= begin && number < begin + most) Append(KeyOf(part), 1.0f, batch);
    ++number;
    return std::string();
  });
}

std::string FieldReader::AppendFeatures(absl::string_view text, Batch* batch) const {
  switch (plan_.kind) {
    case FieldKind::kNumeric:
      return AppendBucket(text, batch);
    case FieldKind::kMultiValued:
      return AppendValues(text, batch);
    case FieldKind::kSequence:
      return AppendSequence(text, batch);
    case FieldKind::kCategorical:
      break;
  }
  if (text.empty() && plan_.default_value) text = *plan_.default_value;
  Append(KeyOf(text), 1.0f, batch);
  return "";
}

}  // namespace strata

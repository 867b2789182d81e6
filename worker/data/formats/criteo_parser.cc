#include "worker/data/formats/criteo_parser.h"

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "ops/natural_log.h"
#include "worker/data/formats/criteo_header.h"
#include "worker/data/formats/csv_cursor.h"
#include "worker/data/formats/feature_hash.h"
#include "worker/data/formats/number_text.h"

namespace strata {
namespace {

// Column c of a line is its bytes [begin[c], begin[c + 1] - 1).
using Columns = std::array<uint32_t, kMaxCriteoColumns + 1>;

// Writes where the columns begin; returns how many the line has, of which at most `limit` are
// written.
size_t FindColumns(absl::string_view line, char separator, uint32_t limit, Columns& begin) {
  const __m256i wanted = _mm256_set1_epi8(separator);
  begin[0] = 0;
  size_t found = 1;
  for (size_t at = 0; at < line.size(); at += 32) {
    alignas(32) char tail[32] = {};
    const char* from = line.data() + at;
    if (line.size() - at < 32) {  // never read past the line
      std::memcpy(tail, from, line.size() - at);
      from = tail;
    }
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    uint32_t mask = static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes, wanted)));
    if (found + std::popcount(mask) > limit) {
      return 1 + static_cast<size_t>(std::count(line.begin(), line.end(), separator));
    }
    for (; mask != 0; mask &= mask - 1) {
      begin[found++] = static_cast<uint32_t>(at + std::countr_zero(mask) + 1);
    }
  }
  begin[found] = static_cast<uint32_t>(line.size() + 1);
  return found;
}

// Longest: 20 bytes ("SP-" and 19 digits make 22).
struct BucketText {
  std::array<char, 24> bytes;
  size_t size;
};

BucketText FormatBucket(int64_t x) {
  BucketText text;
  char* at = text.bytes.data();
  if (x > 2) {
    const double ln = ops::NaturalLog(static_cast<double>(x));
    x = static_cast<int64_t>(ln * ln);  // in 1 .. 1907
  } else {
    *at++ = 'S';
    *at++ = 'P';
  }
  at = std::to_chars(at, text.bytes.data() + text.bytes.size(), x).ptr;
  text.size = static_cast<size_t>(at - text.bytes.data());
  return text;
}

class CriteoParser : public LineParser {
 public:
  CriteoParser(const CriteoLayout& layout, Labels labels, IntegerFeatures integers,
               uint64_t hash_seed)
      : layout_(layout), labels_(labels), integers_(integers) {
    for (uint32_t f = 0; f < field_seeds_.size(); ++f) field_seeds_[f] = FieldSeed(hash_seed, f);
    for (uint32_t x = 0; x < kSmall; ++x) dense_[x] = CriteoDense(x);
    for (uint32_t i = 0; i < kCriteoIntegers; ++i) {
      for (uint32_t x = 0; x < kSmall; ++x) {
        const BucketText text = FormatBucket(x);
        bucket_keys_[i][x] =
            FeatureKey(field_seeds_[kCriteoCategories + i], {text.bytes.data(), text.size});
      }
    }
  }

  uint32_t numeric() const override {
    return integers_ == IntegerFeatures::kDense ? kCriteoIntegers : 0;
  }

 private:
  LineOutcome ParseExample(absl::string_view line, Batch* batch, LineError* error) const override;
  // A line with quotes: its fields are laid out anew without them.
  LineOutcome ParseQuoted(absl::string_view line, Batch* batch, LineError* error) const;
  // `text` holds the columns that `begin` tells.
  LineOutcome ParseColumns(const char* text, const Columns& begin, Batch* batch,
                           LineError* error) const;
  LineOutcome WrongCount(size_t found, LineError* error) const;
  // Integer `i` of the line into the arrays of its example. False: not an integer.
  bool TakeInteger(uint32_t i, absl::string_view text, float* dense, uint64_t* keys) const;

  const CriteoLayout layout_;
  const Labels labels_;
  const IntegerFeatures integers_;
  std::array<uint64_t, kCriteoCategories + kCriteoIntegers> field_seeds_;
  // What integers 0 .. kSmall-1 become, for they are most.
  static constexpr int64_t kSmall = 256;
  std::array<float, kSmall> dense_;
  std::array<std::array<uint64_t, kSmall>, kCriteoIntegers> bucket_keys_;
};

bool CriteoParser::TakeInteger(uint32_t i, absl::string_view text, float* dense,
                               uint64_t* keys) const {
  int64_t x = 0;
  if (!text.empty() && ParseInteger(text, &x) != NumberError::kNone) {
    // Programs that know missing values only as reals write integers as 1.0 to csv.
    if (!layout_.quotes || !absl::ConsumeSuffix(&text, ".0")) return false;
    if (ParseInteger(text, &x) != NumberError::kNone) return false;
  }
  if (integers_ == IntegerFeatures::kDense) {
    dense[i] = x <= 0 ? 0.0f : x < kSmall ? dense_[static_cast<size_t>(x)] : CriteoDense(x);
    return true;
  }
  const uint64_t seed = field_seeds_[kCriteoCategories + i];
  if (text.empty()) {
    keys[kCriteoCategories + i] = FeatureKey(seed, "");
  } else if (x >= 0 && x < kSmall) {
    keys[kCriteoCategories + i] = bucket_keys_[i][static_cast<size_t>(x)];
  } else {
    const BucketText bucket = FormatBucket(x);
    keys[kCriteoCategories + i] = FeatureKey(seed, {bucket.bytes.data(), bucket.size});
  }
  return true;
}

LineOutcome CriteoParser::WrongCount(size_t found, LineError* error) const {
  if (layout_.quotes) {
    return BadLine(1, absl::StrCat("found ", found, " columns, the header names ", layout_.columns),
                   error);
  }
  const bool label = layout_.label != CriteoLayout::kNoColumn;
  return BadLine(1,
                 absl::StrCat("found ", found, " columns parted by tabs, ",
                              label ? "criteo has " : "the first line has ", layout_.columns, " (",
                              label ? "label, " : "no label, ", "13 integers, 26 categories)"),
                 error);
}

LineOutcome CriteoParser::ParseExample(absl::string_view line, Batch* batch,
                                       LineError* error) const {
  if (layout_.quotes && line.find('"') != absl::string_view::npos) {
    return ParseQuoted(line, batch, error);
  }
  Columns begin;
  const size_t found = FindColumns(line, layout_.separator, layout_.columns, begin);
  if (found != layout_.columns) return WrongCount(found, error);
  return ParseColumns(line.data(), begin, batch, error);
}

LineOutcome CriteoParser::ParseQuoted(absl::string_view line, Batch* batch,
                                      LineError* error) const {
  Columns begin{};    // in `text`
  Columns in_line{};  // in `line`
  std::string text, scratch;
  absl::string_view field;
  size_t found = 0;
  CsvCursor cursor(line, layout_.separator);
  while (cursor.Next(&field, &scratch)) {
    if (found++ >= layout_.columns) continue;
    in_line[found - 1] = static_cast<uint32_t>(cursor.column() - 1);
    text.append(field.data(), field.size());
    text.push_back(layout_.separator);
    begin[found] = static_cast<uint32_t>(text.size());
  }
  if (cursor.error() != nullptr) return BadLine(cursor.column(), cursor.error(), error);
  if (found != layout_.columns) return WrongCount(found, error);
  const LineOutcome outcome = ParseColumns(text.data(), begin, batch, error);
  if (outcome == LineOutcome::kBad) {
    const auto column = std::upper_bound(begin.begin(), begin.begin() + found, error->column - 1);
    error->column = in_line[column - begin.begin() - 1] + 1;
  }
  return outcome;
}

LineOutcome CriteoParser::ParseColumns(const char* text, const Columns& begin, Batch* batch,
                                       LineError* error) const {
  const auto column = [&](uint32_t c) {
    return absl::string_view(text + begin[c], begin[c + 1] - begin[c] - 1);
  };
  const bool labelled = layout_.label != CriteoLayout::kNoColumn &&
                        (labels_ == Labels::kRequired || !column(layout_.label).empty());
  float label = std::numeric_limits<float>::quiet_NaN();
  if (labelled && !ParseLabel(column(layout_.label), &label)) {
    return BadLine(begin[layout_.label] + 1,
                   absl::StrCat("label ", Quoted(column(layout_.label)), " is none of 0, 1, -1"),
                   error);
  }
  const BatchMark mark(*batch);
  const size_t features = integers_ == IntegerFeatures::kDense
                              ? kCriteoCategories
                              : kCriteoCategories + kCriteoIntegers;
  const size_t first_key = batch->keys.size();
  const size_t first_dense = batch->dense.size();
  batch->keys.resize(first_key + features);
  batch->dense.resize(first_dense + numeric());
  uint64_t* keys = batch->keys.data() + first_key;
  float* dense = batch->dense.data() + first_dense;
  for (uint32_t i = 0; i < kCriteoIntegers; ++i) {
    const absl::string_view value = column(layout_.integers[i]);
    if (!TakeInteger(i, value, dense, keys)) {
      mark.Restore(batch);
      return BadLine(
          begin[layout_.integers[i]] + 1,
          absl::StrCat("I", i + 1, " ", Quoted(value), " is not an integer of at most 64 bits"),
          error);
    }
  }
  for (uint32_t f = 0; f < kCriteoCategories; ++f) {
    keys[f] = FeatureKey(field_seeds_[f], column(layout_.categories[f]));
  }
  AppendExample(label, batch);
  return LineOutcome::kExample;
}

}  // namespace

std::unique_ptr<LineParser> MakeCriteoParser(IntegerFeatures integers, uint64_t hash_seed) {
  return std::make_unique<CriteoParser>(CriteoTsvLayout(true), Labels::kRequired, integers,
                                        hash_seed);
}

std::unique_ptr<LineParser> MakeCriteoScoringParser(absl::string_view first_line,
                                                    IntegerFeatures integers, uint64_t hash_seed) {
  const auto tabs = std::count(first_line.begin(), first_line.end(), '\t');
  const bool label = tabs + 1 != kCriteoIntegers + kCriteoCategories;
  return std::make_unique<CriteoParser>(CriteoTsvLayout(label), Labels::kOptional, integers,
                                        hash_seed);
}

absl::StatusOr<std::unique_ptr<LineParser>> MakeCriteoCsvParser(absl::string_view header,
                                                                IntegerFeatures integers,
                                                                uint64_t hash_seed, Labels labels) {
  const absl::StatusOr<CriteoLayout> layout = ParseCriteoHeader(header, labels);
  if (!layout.ok()) return layout.status();
  return std::unique_ptr<LineParser>(
      std::make_unique<CriteoParser>(*layout, labels, integers, hash_seed));
}

float CriteoDense(int64_t x) {
  if (x <= 0) return 0.0f;
  return static_cast<float>(ops::NaturalLog(1.0 + static_cast<double>(x)));
}

std::string CriteoBucket(int64_t x) {
  const BucketText text = FormatBucket(x);
  return std::string(text.bytes.data(), text.size);
}

}  // namespace strata

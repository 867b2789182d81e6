#include "worker/data/criteo_parser.h"

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "worker/data/feature_hash.h"
#include "worker/data/natural_log.h"
#include "worker/data/number_text.h"

namespace strata {
namespace {

constexpr uint32_t kColumns = 1 + kCriteoIntegers + kCriteoCategories;
constexpr uint32_t kTabs = kColumns - 1;

// Writes the offsets of the first kTabs tabs; returns how many tabs the line has.
size_t FindTabs(absl::string_view line, std::array<uint32_t, kTabs>& tabs) {
  const __m256i tab = _mm256_set1_epi8('\t');
  size_t found = 0;
  for (size_t at = 0; at < line.size(); at += 32) {
    alignas(32) char tail[32] = {};
    const char* from = line.data() + at;
    if (line.size() - at < 32) {  // never read past the line
      std::memcpy(tail, from, line.size() - at);
      from = tail;
    }
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    uint32_t mask = static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes, tab)));
    if (found + std::popcount(mask) > kTabs) return found + std::popcount(mask);
    for (; mask != 0; mask &= mask - 1) {
      tabs[found++] = static_cast<uint32_t>(at + std::countr_zero(mask));
    }
  }
  return found;
}

size_t CountColumns(absl::string_view line) {
  return 1 + static_cast<size_t>(std::count(line.begin(), line.end(), '\t'));
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
    const double ln = NaturalLog(static_cast<double>(x));
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
  CriteoParser(IntegerFeatures integers, uint64_t hash_seed) : integers_(integers) {
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
  using Tabs = std::array<uint32_t, kTabs>;

  LineOutcome ParseExample(absl::string_view line, Batch* batch, LineError* error) const override;
  // Integer `i` of the line into the arrays of its example. False: not an integer.
  bool TakeInteger(uint32_t i, absl::string_view text, float* dense, uint64_t* keys) const;

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
  if (!text.empty() && ParseInteger(text, &x) != NumberError::kNone) return false;
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

LineOutcome CriteoParser::ParseExample(absl::string_view line, Batch* batch,
                                       LineError* error) const {
  Tabs tabs;
  if (FindTabs(line, tabs) != kTabs) {
    return BadLine(
        1,
        absl::StrCat("found ", CountColumns(line), " columns parted by tabs, criteo has ", kColumns,
                     " (label, 13 integers, 26 categories)"),
        error);
  }
  const absl::string_view label_text = line.substr(0, tabs[0]);
  float label = 0;
  if (!ParseLabel(label_text, &label)) {
    return BadLine(1, absl::StrCat("label ", Quoted(label_text), " is none of 0, 1, -1"), error);
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
  const char* text = line.data();
  for (uint32_t i = 0; i < kCriteoIntegers; ++i) {
    const size_t begin = tabs[i] + 1;
    const absl::string_view value(text + begin, tabs[i + 1] - begin);
    if (!TakeInteger(i, value, dense, keys)) {
      mark.Restore(batch);
      return BadLine(
          begin + 1,
          absl::StrCat("I", i + 1, " ", Quoted(value), " is not an integer of at most 64 bits"),
          error);
    }
  }
  for (uint32_t f = 0; f < kCriteoCategories; ++f) {
    const size_t begin = tabs[kCriteoIntegers + f] + 1;
    const size_t end = f + 1 < kCriteoCategories ? tabs[kCriteoIntegers + f + 1] : line.size();
    keys[f] = FeatureKey(field_seeds_[f], {text + begin, end - begin});
  }
  AppendExample(label, batch);
  return LineOutcome::kExample;
}

}  // namespace

std::unique_ptr<LineParser> MakeCriteoParser(IntegerFeatures integers, uint64_t hash_seed) {
  return std::make_unique<CriteoParser>(integers, hash_seed);
}

float CriteoDense(int64_t x) {
  if (x <= 0) return 0.0f;
  return static_cast<float>(NaturalLog(1.0 + static_cast<double>(x)));
}

std::string CriteoBucket(int64_t x) {
  const BucketText text = FormatBucket(x);
  return std::string(text.bytes.data(), text.size);
}

}  // namespace strata

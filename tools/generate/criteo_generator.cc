#include "tools/generate/criteo_generator.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ops/natural_log.h"
#include "proto/core/position.h"
#include "tools/generate/zipf.h"

namespace strata {
namespace {

constexpr uint32_t kIntegers = 13;
constexpr uint32_t kCategories = 26;
constexpr uint32_t kFactors = 4;
constexpr uint64_t kCalibrationRows = 20'000;

// Ids per field in Criteo's Kaggle data set.
constexpr std::array<uint64_t, kCategories> kCardinality = {
    1460, 583,   10131227, 2202608, 305,  24,   12517, 633,     3,  93145, 5683,   8351593, 3194,
    27,   14992, 5461306,  10,      5652, 2173, 4,     7046547, 18, 15,    286181, 105,     142572};
// In 1/256: how often a category or an integer is missing.
constexpr std::array<uint32_t, kCategories> kMissing = {
    0, 0, 8, 8, 0, 31, 0, 0, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 113, 113, 8, 196, 0, 8, 113, 113};
constexpr std::array<uint32_t, kIntegers> kIntegerMissing = {116, 0,  55,  55, 7,   57, 11,
                                                             1,   11, 116, 11, 196, 55};
// Medians of the integers when present.
constexpr std::array<double, kIntegers> kIntegerMedian = {1, 3,  6, 4, 2800, 32, 3,
                                                          8, 38, 1, 1, 1,    4};

// Standard deviations of the logit's parts.
constexpr double kFirstOrder = 0.9;
constexpr double kPairwise = 1.8;
constexpr double kNonlinear = 0.3;
constexpr double kPositiveRate = 0.25;

uint64_t Hash(std::initializer_list<uint64_t> parts) {
  uint64_t h = 0;
  for (const uint64_t part : parts) h = Mix64((h ^ part) + 0x9e3779b97f4a7c15ull);
  return h;
}

// Evenly in [-sqrt(3), sqrt(3)): mean 0, variance 1.
double Centered(uint32_t bits16) {
  return (static_cast<double>(bits16) + 0.5) * (2 * 1.7320508075688772 / 65536) -
         1.7320508075688772;
}

double Sigmoid(double x) { return 1.0 / (1.0 + NaturalExp(-std::clamp(x, -30.0, 30.0))); }
// A soft step from -1 to 1.
double Step(double x) { return x / (1.0 + std::fabs(x)); }

// A row before it is written: missing is -1 (categories) or kMissingInteger.
constexpr int64_t kMissingInteger = INT64_MIN;
struct Row {
  std::array<int64_t, kIntegers> integers;
  std::array<int64_t, kCategories> ranks;
};

// The parts of a logit before scaling.
struct Parts {
  double first_order = 0;
  double pairwise = 0;
  double nonlinear = 0;
};

// Mean and 1 / standard deviation of a part.
struct Scale {
  double mean = 0;
  double factor = 1;
};

class Generator : public CriteoGenerator {
 public:
  explicit Generator(const CriteoGeneratorOptions& options);

  GeneratedRow AppendRow(uint64_t row, std::string* out) const override;

 private:
  Row Draw(RandomStream& random) const;
  Parts TeacherParts(const Row& row) const;
  double Logit(const Parts& parts) const;
  // Sets the scales and the constant from rows that no data set has.
  void Calibrate();
  char* Write(const Row& row, bool label, char* at) const;

  const uint64_t seed_;
  std::vector<ZipfDistribution> fields_;
  std::array<uint64_t, kCategories> weight_seed_;
  std::array<uint64_t, kCategories> factor_seed_;
  std::array<uint32_t, kCategories> id_salt_;
  std::array<double, kIntegers> slope_;
  std::array<double, kIntegers> step_;
  std::array<std::array<double, kFactors>, 2> hidden_;
  Scale first_order_;
  Scale pairwise_;
  Scale nonlinear_;
  double constant_ = 0;
};

Generator::Generator(const CriteoGeneratorOptions& options) : seed_(options.seed) {
  for (const uint64_t size : CriteoFieldSizes(options.vocabulary)) {
    fields_.emplace_back(size, options.zipf);
  }
  for (uint32_t f = 0; f < kCategories; ++f) {
    weight_seed_[f] = Hash({seed_, 1, f});
    factor_seed_[f] = Hash({seed_, 2, f});
    id_salt_[f] = static_cast<uint32_t>(Hash({seed_, 3, f}));
  }
  RandomStream random(Hash({seed_, 4}));
  for (double& s : slope_) s = Centered(random.Next() & 0xffff);
  for (double& s : step_) s = Centered(random.Next() & 0xffff);
  for (auto& unit : hidden_) {
    for (double& w : unit) w = Centered(random.Next() & 0xffff);
  }
  Calibrate();
}

Row Generator::Draw(RandomStream& random) const {
  Row row;
  for (uint32_t i = 0; i < kIntegers; ++i) {
    const uint64_t bits = random.Next();
    if ((bits & 255) < kIntegerMissing[i]) {
      row.integers[i] = kMissingInteger;
      continue;
    }
    // P(x >= t) = median / (median + t): a heavy tail, cut at 2^22.
    const double u = (static_cast<double>(bits >> 32) + 0.5) * 0x1p-32;
    const double x = kIntegerMedian[i] * (1.0 / u - 1.0);
    row.integers[i] = static_cast<int64_t>(std::min(x, 4194304.0));
    // The second integer of the real data goes down to -3.
    if (i == 1) row.integers[i] -= static_cast<int64_t>((bits >> 8) & 3);
  }
  const std::array<uint64_t, 4> missing = {random.Next(), random.Next(), random.Next(),
                                           random.Next()};
  for (uint32_t f = 0; f < kCategories; ++f) {
    const uint32_t byte = static_cast<uint32_t>(missing[f / 8] >> (8 * (f % 8))) & 255;
    row.ranks[f] = byte < kMissing[f] ? -1 : static_cast<int64_t>(fields_[f].Draw(random));
  }
  return row;
}

Parts Generator::TeacherParts(const Row& row) const {
  Parts parts;
  std::array<double, kFactors> sum = {};
  double squares = 0;
  for (uint32_t f = 0; f < kCategories; ++f) {
    const uint64_t id = static_cast<uint64_t>(row.ranks[f] + 1);  // 0: missing
    const double shrink = 1.0 / (1.0 + static_cast<double>(id) / 16.0);
    const uint64_t w = Mix64(weight_seed_[f] + id * 0x9e3779b97f4a7c15ull);
    parts.first_order += shrink * Centered(w & 0xffff);
    const uint64_t v = Mix64(factor_seed_[f] + id * 0x9e3779b97f4a7c15ull);
    for (uint32_t k = 0; k < kFactors; ++k) {
      const double factor = shrink * Centered(static_cast<uint32_t>(v >> (16 * k)) & 0xffff);
      sum[k] += factor;
      squares += factor * factor;
    }
  }
  for (const double s : sum) parts.pairwise += s * s;
  parts.pairwise = 0.5 * (parts.pairwise - squares);
  for (uint32_t i = 0; i < kIntegers; ++i) {
    const int64_t x = row.integers[i];
    const double ln = x > 0 ? ops::NaturalLog(1.0 + static_cast<double>(x)) : 0.0;
    parts.first_order += 0.25 * slope_[i] * ln;
    parts.nonlinear += 0.5 * Step(2.0 * (ln - ops::NaturalLog(1.0 + kIntegerMedian[i]))) * step_[i];
  }
  for (const auto& unit : hidden_) {
    double z = 0;
    for (uint32_t k = 0; k < kFactors; ++k) z += unit[k] * sum[k];
    parts.nonlinear += 2.0 * Step(0.5 * z);
  }
  return parts;
}

double Generator::Logit(const Parts& parts) const {
  return constant_ + kFirstOrder * (parts.first_order - first_order_.mean) * first_order_.factor +
         kPairwise * (parts.pairwise - pairwise_.mean) * pairwise_.factor +
         kNonlinear * (parts.nonlinear - nonlinear_.mean) * nonlinear_.factor;
}

void Generator::Calibrate() {
  std::vector<Parts> sample;
  for (uint64_t i = 0; i < kCalibrationRows; ++i) {
    RandomStream random(Hash({seed_, 6, i}));
    sample.push_back(TeacherParts(Draw(random)));
  }
  const auto scale = [&](double Parts::*part) {
    double sum = 0;
    double squares = 0;
    for (const Parts& p : sample) {
      sum += p.*part;
      squares += p.*part * (p.*part);
    }
    const double mean = sum / kCalibrationRows;
    const double variance = squares / kCalibrationRows - mean * mean;
    return Scale{mean, variance > 1e-12 ? 1.0 / std::sqrt(variance) : 0.0};
  };
  first_order_ = scale(&Parts::first_order);
  pairwise_ = scale(&Parts::pairwise);
  nonlinear_ = scale(&Parts::nonlinear);
  double low = -20;
  double high = 20;
  for (int i = 0; i < 40; ++i) {  // the positive rate grows with the constant
    constant_ = 0.5 * (low + high);
    double rate = 0;
    for (const Parts& p : sample) rate += Sigmoid(Logit(p));
    (rate / kCalibrationRows < kPositiveRate ? low : high) = constant_;
  }
}

char* Generator::Write(const Row& row, bool label, char* at) const {
  *at++ = label ? '1' : '0';
  for (const int64_t x : row.integers) {
    *at++ = '\t';
    if (x != kMissingInteger) at = std::to_chars(at, at + 20, x).ptr;
  }
  for (uint32_t f = 0; f < kCategories; ++f) {
    *at++ = '\t';
    if (row.ranks[f] < 0) continue;
    // A bijection of 32 bits (multiplications by odd numbers, xor-shifts): no two ids collide.
    uint32_t id = static_cast<uint32_t>(row.ranks[f]) ^ id_salt_[f];
    id = (id ^ (id >> 16)) * 0x7feb352du;
    id = (id ^ (id >> 15)) * 0x846ca68bu;
    id ^= id >> 16;
    for (int shift = 28; shift >= 0; shift -= 4) *at++ = "0123456789abcdef"[(id >> shift) & 15];
  }
  *at++ = '\n';
  return at;
}

GeneratedRow Generator::AppendRow(uint64_t number, std::string* out) const {
  RandomStream random(Hash({seed_, 5, number}));
  const double draw = random.Uniform();
  const Row row = Draw(random);
  GeneratedRow made;
  made.probability = Sigmoid(Logit(TeacherParts(row)));
  made.label = draw < made.probability;
  // 2 + 13 x 21 + 26 x 9 at most.
  std::array<char, 512> line;
  out->append(line.data(), Write(row, made.label, line.data()) - line.data());
  return made;
}

}  // namespace

std::array<uint64_t, 26> CriteoFieldSizes(uint64_t vocabulary) {
  constexpr uint64_t kBig = 100'000;
  constexpr uint64_t kProportionalFrom = 2'000'000;
  std::array<uint64_t, 26> sizes = kCardinality;
  if (vocabulary >= kProportionalFrom) {
    uint64_t small = 0;
    uint64_t big = 0;
    for (const uint64_t size : sizes) (size > kBig ? big : small) += size;
    uint64_t left = vocabulary - small;
    for (uint64_t& size : sizes) {
      if (size <= kBig) continue;
      const uint64_t share =
          static_cast<uint64_t>(static_cast<unsigned __int128>(size) * left / big);
      big -= size;
      left -= share;
      size = share;
    }
    return sizes;
  }
  // The smallest fields first: each takes its cardinality or an even share of what is left.
  std::array<uint32_t, 26> order;
  for (uint32_t f = 0; f < 26; ++f) order[f] = f;
  std::stable_sort(order.begin(), order.end(),
                   [](uint32_t a, uint32_t b) { return kCardinality[a] < kCardinality[b]; });
  uint64_t left = vocabulary;
  for (uint32_t i = 0; i < 26; ++i) {
    uint64_t& size = sizes[order[i]];
    size = std::min(size, left / (26 - i));
    left -= size;
  }
  return sizes;
}

absl::StatusOr<std::unique_ptr<CriteoGenerator>> CriteoGenerator::Make(
    const CriteoGeneratorOptions& options) {
  if (options.vocabulary < 260 || options.vocabulary > uint64_t{1} << 32) {
    return absl::InvalidArgumentError(
        absl::StrCat("vocabulary: ", options.vocabulary, " is not in 260 .. 4294967296"));
  }
  if (!(options.zipf > 0.0 && options.zipf <= 4.0)) {
    return absl::InvalidArgumentError(absl::StrCat("zipf: ", options.zipf, " is not in (0, 4]"));
  }
  return std::unique_ptr<CriteoGenerator>(std::make_unique<Generator>(options));
}

}  // namespace strata

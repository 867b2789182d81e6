#include "ops/coalesce.h"

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "ops/coalesce_sum.h"
#include "ops/cpu_features.h"
#include "tests/ops/golden_hash.h"

namespace strata::ops {
namespace {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 2 + 1) {}
  uint32_t Next() {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<uint32_t>(state_ >> 32);
  }
  uint32_t Below(uint32_t n) { return static_cast<uint32_t>((uint64_t{Next()} * n) >> 32); }
  float Float() { return static_cast<float>(static_cast<int32_t>(Next())) * 0x1p-31f; }

 private:
  uint64_t state_;
};

// Occurrences of keys with the given counts, dealt to features at random, ascending within a key.
struct Occurrences {
  std::vector<uint32_t> first{0}, occurrences;

  Occurrences(const std::vector<uint32_t>& counts, uint64_t seed) {
    for (uint32_t c : counts) first.push_back(first.back() + c);
    occurrences.resize(first.back());
    std::vector<uint32_t> shuffled(first.back());
    for (uint32_t i = 0; i < shuffled.size(); ++i) shuffled[i] = i;
    Random random(seed);
    for (uint32_t i = static_cast<uint32_t>(shuffled.size()); i > 1; --i) {
      std::swap(shuffled[i - 1], shuffled[random.Below(i)]);
    }
    for (size_t u = 0; u < counts.size(); ++u) {
      std::sort(shuffled.begin() + first[u], shuffled.begin() + first[u + 1]);
    }
    occurrences = shuffled;
  }
  uint32_t unique() const { return static_cast<uint32_t>(first.size() - 1); }
  KeyOccurrences All() const { return {first.data(), occurrences.data(), 0, unique()}; }
};

// Every shape of tree: 0 to 4 chunks and many, complete and not.
std::vector<uint32_t> Counts() {
  std::vector<uint32_t> counts;
  for (uint32_t n = 0; n <= 130; ++n) counts.push_back(n);
  for (uint32_t n : {160u, 191u, 192u, 193u, 224u, 225u, 255u, 256u, 257u, 1000u, 4096u, 4097u}) {
    counts.push_back(n);
  }
  return counts;
}

// EXACT.md rule 6 as it is written: recursive, one element at a time.
float SumOfTree(const std::vector<float>& chunks, uint32_t a, uint32_t b) {
  if (b - a == 1) return chunks[a];
  const uint32_t split = a + std::bit_floor(b - a - 1);
  return SumOfTree(chunks, a, split) + SumOfTree(chunks, split, b);
}

float Reference(const Occurrences& keys, uint32_t u, const std::function<float(uint32_t)>& value) {
  std::vector<float> chunks;
  for (uint32_t i = keys.first[u]; i < keys.first[u + 1]; ++i) {
    const float x = value(keys.occurrences[i]);
    if ((i - keys.first[u]) % 32 == 0) {
      chunks.push_back(x);
    } else {
      chunks.back() += x;
    }
  }
  return chunks.empty() ? 0.0f : SumOfTree(chunks, 0, static_cast<uint32_t>(chunks.size()));
}

bool SameBits(float a, float b) { return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); }

template <typename Body>
void ForEveryIsa(const Body& body) {
  const IsaLevel before = ActiveIsaLevel();
  for (IsaLevel level : {IsaLevel::kV3, IsaLevel::kV4}) {
    if (level > SupportedIsaLevel()) {
      WARN("no AVX-512 here: its build was not tried");
      continue;
    }
    SetActiveIsaLevel(level);
    body();
  }
  SetActiveIsaLevel(before);
}

TEST_CASE("duplicates are summed in chunks of 32, then along the tree", "[ops][coalesce]") {
  const Occurrences keys(Counts(), 1);
  for (uint32_t dim : {1u, 2u, 3u, 4u, 5u, 8u, 16u, 17u, 24u, 33u, 100u}) {
    const size_t stride = dim + 2, sum_stride = dim + 1;
    std::vector<float> gradients(keys.occurrences.size() * stride);
    Random random(dim);
    for (float& x : gradients) x = random.Float();
    ForEveryIsa([&] {
      std::vector<float> sums(keys.unique() * sum_stride, 5.0f);
      CoalesceRows(keys.All(), dim, gradients.data(), stride, sums.data(), sum_stride);
      size_t wrong = 0;
      for (uint32_t u = 0; u < keys.unique(); ++u) {
        for (uint32_t d = 0; d < dim; ++d) {
          const float want =
              Reference(keys, u, [&](uint32_t f) { return gradients[f * stride + d]; });
          wrong += SameBits(sums[u * sum_stride + d], want) ? 0 : 1;
        }
        wrong += sums[u * sum_stride + dim] == 5.0f ? 0 : 1;  // between the rows
      }
      INFO("dim " << dim);
      CHECK(wrong == 0);
    });
  }
}

TEST_CASE("one gradient per example, with and without values", "[ops][coalesce]") {
  const Occurrences keys(Counts(), 2);
  const uint32_t features = static_cast<uint32_t>(keys.occurrences.size());
  Random random(3);
  std::vector<uint32_t> example(features);
  std::vector<float> values(features), gradient(features / 26 + 1);
  for (uint32_t f = 0; f < features; ++f) example[f] = f / 26;
  for (float& x : values) x = random.Float();
  for (float& x : gradient) x = random.Float();
  ForEveryIsa([&] {
    std::vector<float> sums(keys.unique() * 3, 5.0f), plain(keys.unique(), 5.0f);
    CoalesceScaled(keys.All(), example.data(), gradient.data(), values.data(), sums.data(), 3);
    CoalesceScaled(keys.All(), example.data(), gradient.data(), nullptr, plain.data(), 1);
    for (uint32_t u = 0; u < keys.unique(); ++u) {
      CHECK(SameBits(sums[u * 3], Reference(keys, u, [&](uint32_t f) {
                       return gradient[example[f]] * values[f];
                     })));
      CHECK(
          SameBits(plain[u], Reference(keys, u, [&](uint32_t f) { return gradient[example[f]]; })));
      CHECK(sums[u * 3 + 1] == 5.0f);
    }
  });
}

TEST_CASE("a single occurrence passes through with its bits", "[ops][coalesce]") {
  const Occurrences keys({1, 1}, 1);
  const std::vector<float> gradients = {-0.0f, 1e-45f};
  float sums[2];
  CoalesceRows(keys.All(), 1, gradients.data(), 1, sums, 1);
  CHECK(SameBits(sums[0], gradients[keys.occurrences[0]]));
  CHECK(SameBits(sums[1], gradients[keys.occurrences[1]]));
}

TEST_CASE("non-finite gradients reach the sum", "[ops][coalesce]") {
  // The guard stands at the row (optimizer.h); sums must not lose what it looks for.
  const Occurrences keys({70}, 4);
  std::vector<float> gradients(70 * 16, 1.0f);
  gradients[69 * 16 + 3] = std::numeric_limits<float>::infinity();
  gradients[5 * 16 + 4] = std::numeric_limits<float>::quiet_NaN();
  float sums[16];
  CoalesceRows(keys.All(), 16, gradients.data(), 16, sums, 16);
  CHECK(sums[3] == std::numeric_limits<float>::infinity());
  CHECK(sums[4] != sums[4]);
  CHECK(sums[5] == 70.0f);
}

TEST_CASE("splitting keys over threads changes no bit", "[ops][coalesce]") {
  const Occurrences keys(Counts(), 5);
  std::vector<float> gradients(keys.occurrences.size() * 17);
  Random random(6);
  for (float& x : gradients) x = random.Float();
  std::vector<float> whole(keys.unique() * 17);
  CoalesceRows(keys.All(), 17, gradients.data(), 17, whole.data(), 17);
  for (uint32_t parts : {1u, 2u, 3u, 7u, 64u, 1000u}) {
    std::vector<float> sums(whole.size(), 5.0f);
    CHECK(CoalesceSplit(keys.first.data(), keys.unique(), parts, 0) == 0);
    CHECK(CoalesceSplit(keys.first.data(), keys.unique(), parts, parts) == keys.unique());
    for (uint32_t part = 0; part < parts; ++part) {
      KeyOccurrences run = keys.All();
      run.begin = CoalesceSplit(keys.first.data(), keys.unique(), parts, part);
      run.end = CoalesceSplit(keys.first.data(), keys.unique(), parts, part + 1);
      REQUIRE(run.begin <= run.end);
      CoalesceRows(run, 17, gradients.data(), 17, sums.data(), 17);
    }
    CHECK(std::memcmp(sums.data(), whole.data(), sums.size() * 4) == 0);
  }
}

TEST_CASE("parts have about equal work", "[ops][coalesce]") {
  Random random(7);
  std::vector<uint32_t> counts(10000);
  for (uint32_t& c : counts) c = 1 + (random.Below(100) == 0 ? random.Below(200) : 0);
  const Occurrences keys(counts, 8);
  const uint64_t total = keys.first.back() + keys.unique();
  for (uint32_t part = 0; part < 8; ++part) {
    const uint32_t a = CoalesceSplit(keys.first.data(), keys.unique(), 8, part);
    const uint32_t b = CoalesceSplit(keys.first.data(), keys.unique(), 8, part + 1);
    const uint64_t work = keys.first[b] - keys.first[a] + (b - a);
    CHECK(work <= total / 8 + 201);
    CHECK(work + 201 >= total / 8);
  }
  const uint32_t none = 0;
  CHECK(CoalesceSplit(&none, 0, 4, 2) == 0);
}

TEST_CASE("rows that are computed on the fly", "[ops][coalesce]") {
  // A gradient that depends on both the feature and the key, as a factorisation machine's does.
  struct Computed {
    float feature, key;
    float operator[](uint32_t d) const { return feature * (static_cast<float>(d) - key); }
  };
  const Occurrences keys(Counts(), 9);
  std::vector<float> sums(keys.unique() * 21);
  CoalesceSum(
      keys.All(), 21,
      [](uint32_t f, uint32_t u) {
        return Computed{static_cast<float>(f % 7) * 0.3f, static_cast<float>(u) * 0.1f};
      },
      [](uint32_t) {}, sums.data(), 21);
  for (uint32_t u = 0; u < keys.unique(); ++u) {
    for (uint32_t d = 0; d < 21; ++d) {
      CHECK(SameBits(sums[u * 21 + d], Reference(keys, u, [&](uint32_t f) {
                       return static_cast<float>(f % 7) * 0.3f *
                              (static_cast<float>(d) - static_cast<float>(u) * 0.1f);
                     })));
    }
  }
}

TEST_CASE("golden bits of coalesced sums", "[ops][coalesce][exact]") {
  const Occurrences keys(Counts(), 10);
  std::vector<float> gradients(keys.occurrences.size() * 17);
  Random random(11);
  for (float& x : gradients) x = random.Float();
  ForEveryIsa([&] {
    std::vector<float> sums(keys.unique() * 17);
    CoalesceRows(keys.All(), 17, gradients.data(), 17, sums.data(), 17);
    GoldenHash hash;
    hash.Add(sums);
    CHECK(hash.value() == 0x468727135da108fe);
  });
}

}  // namespace
}  // namespace strata::ops

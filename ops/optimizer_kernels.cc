// Built once per instruction set: no inline std or Abseil code here (isa.bzl).
#include "ops/optimizer_kernels.h"

namespace strata::ops::STRATA_ISA {
namespace {

constexpr uint32_t kBlock = 128;          // floats worked on at once
constexpr uint32_t kRowsOfOne = 32;       // rows worked on at once when dim is 1
constexpr size_t kPrefetchRows = 8;       // covers one DRAM latency at the rate of Apply
constexpr uint32_t kPrefetchFloats = 64;  // of a row; the hardware follows longer ones by itself
constexpr uint32_t kFirstNonFinite = 0x7f800000u;

// The absolute value's bits: at least kFirstNonFinite for infinities and NaN only.
inline uint32_t Magnitude(float x) { return __builtin_bit_cast(uint32_t, x) & 0x7fffffffu; }

inline uint32_t Max(uint32_t a, uint32_t b) { return a < b ? b : a; }

// The rules of ALGORITHMS.md section 1 for one element. Update changes its arguments.
struct Sgd {
  static constexpr uint32_t kStates = 0;
  float rate;
  explicit Sgd(const ApplyArguments& a) : rate(a.rate) {}
  void Update(float g, float& w, float&, float&) const { w = __builtin_fmaf(-rate, g, w); }
};

struct Adagrad {
  static constexpr uint32_t kStates = 1;
  float rate, epsilon;
  explicit Adagrad(const ApplyArguments& a) : rate(a.rate), epsilon(a.epsilon) {}
  void Update(float g, float& w, float& sum, float&) const {
    sum = __builtin_fmaf(g, g, sum);
    w = w - (rate * g) / (__builtin_sqrtf(sum) + epsilon);
  }
};

struct Adam {
  static constexpr uint32_t kStates = 2;
  float rate, epsilon, beta1, beta2, rest1, rest2;
  explicit Adam(const ApplyArguments& a)
      : rate(a.rate),
        epsilon(a.epsilon),
        beta1(a.beta1),
        beta2(a.beta2),
        rest1(1.0f - a.beta1),
        rest2(1.0f - a.beta2) {}
  void Update(float g, float& w, float& m, float& v) const {
    m = __builtin_fmaf(beta1, m, rest1 * g);
    v = __builtin_fmaf(beta2, v, (rest2 * g) * g);
    w = w - (rate * m) / (__builtin_sqrtf(v) + epsilon);
  }
};

// gradient = sum / examples. When examples is a power of two its inverse is exact, and the product
// rounds the same real number as the quotient does: same bits, without the division.
struct Divide {
  float examples;
  float operator()(float sum) const { return sum / examples; }
};
struct Scale {
  float inverse;
  float operator()(float sum) const { return sum * inverse; }
};

// Updated copies of one block, until it is known that all are finite.
struct Block {
  float weights[kBlock];
  float first[kBlock];
  float second[kBlock];
};

// kWidth: floats of the block if known at compile time, else 0 and `width` counts. Returns the
// largest magnitude of gradients and results.
template <uint32_t kWidth, typename Rule, typename Mean>
inline uint32_t Compute(const Rule& rule, const Mean& mean, uint32_t width, const float* sums,
                        const float* weights, const float* first, const float* second, Block& out) {
  const uint32_t n = kWidth != 0 ? kWidth : width;
  uint32_t worst = 0;
  for (uint32_t d = 0; d < n; ++d) {
    const float g = mean(sums[d]);
    float w = weights[d];
    float s0 = Rule::kStates >= 1 ? first[d] : 0.0f;
    float s1 = Rule::kStates >= 2 ? second[d] : 0.0f;
    rule.Update(g, w, s0, s1);
    out.weights[d] = w;
    if (Rule::kStates >= 1) out.first[d] = s0;
    if (Rule::kStates >= 2) out.second[d] = s1;
    worst = Max(worst, Max(Max(Magnitude(g), Magnitude(w)), Max(Magnitude(s0), Magnitude(s1))));
  }
  return worst;
}

template <uint32_t kWidth, typename Rule>
inline void Store(uint32_t width, const Block& block, float* weights, float* first, float* second) {
  const uint32_t n = kWidth != 0 ? kWidth : width;
  for (uint32_t d = 0; d < n; ++d) weights[d] = block.weights[d];
  if (Rule::kStates >= 1) {
    for (uint32_t d = 0; d < n; ++d) first[d] = block.first[d];
  }
  if (Rule::kStates >= 2) {
    for (uint32_t d = 0; d < n; ++d) second[d] = block.second[d];
  }
}

// One row of any length; false when refused. Rows of several blocks are computed twice: first to
// see that every element is finite, then to store.
template <typename Rule, typename Mean>
bool ApplyLong(const Rule& rule, const Mean& mean, uint32_t dim, const float* sums, float* weights,
               float* state) {
  Block block;
  for (int pass = 0; pass < 2; ++pass) {
    for (uint32_t at = 0; at < dim; at += kBlock) {
      const uint32_t width = dim - at < kBlock ? dim - at : kBlock;
      float* first = Rule::kStates >= 1 ? state + at : nullptr;
      float* second = Rule::kStates >= 2 ? state + dim + at : nullptr;
      const uint32_t worst =
          Compute<0>(rule, mean, width, sums + at, weights + at, first, second, block);
      if (worst >= kFirstNonFinite) return false;  // only in pass 0
      if (pass == 1 || dim <= kBlock) {
        Store<0, Rule>(width, block, weights + at, first, second);
      }
    }
    if (dim <= kBlock) break;
  }
  return true;
}

inline void PrefetchFloats(const float* p, uint32_t n) {
  n = n < kPrefetchFloats ? n : kPrefetchFloats;
  for (uint32_t at = 0; at < n; at += 16) __builtin_prefetch(p + at, 1, 3);
  __builtin_prefetch(p + n - 1, 1, 3);
}

template <uint32_t kDim, typename Rule, typename Mean>
size_t ApplyEach(const ApplyArguments& a, const Rule& rule, const Mean& mean) {
  const uint32_t dim = kDim != 0 ? kDim : a.dim;
  size_t refused = 0;
  for (size_t i = 0; i < a.n; ++i) {
    if (i + kPrefetchRows < a.n) {
      PrefetchFloats(a.weights[i + kPrefetchRows], dim);
      if (Rule::kStates != 0) PrefetchFloats(a.states[i + kPrefetchRows], dim * Rule::kStates);
    }
    const float* sums = a.gradient_sums + i * a.gradient_stride;
    float* state = Rule::kStates != 0 ? a.states[i] : nullptr;
    bool ok;
    if (kDim != 0) {
      Block block;
      float* second = Rule::kStates >= 2 ? state + kDim : nullptr;
      ok = Compute<kDim>(rule, mean, kDim, sums, a.weights[i], state, second, block) <
           kFirstNonFinite;
      if (ok) Store<kDim, Rule>(kDim, block, a.weights[i], state, second);
    } else {
      ok = ApplyLong(rule, mean, dim, sums, a.weights[i], state);
    }
    refused += ok ? 0 : 1;
    if (a.refused != nullptr) a.refused[i] = ok ? 0 : 1;
  }
  return refused;
}

// dim = 1: rows side by side fill the vector instead of a row's elements.
template <typename Rule, typename Mean>
size_t ApplyScalars(const ApplyArguments& a, const Rule& rule, const Mean& mean) {
  size_t refused = 0;
  for (size_t at = 0; at < a.n; at += kRowsOfOne) {
    const uint32_t n = a.n - at < kRowsOfOne ? static_cast<uint32_t>(a.n - at) : kRowsOfOne;
    float sums[kRowsOfOne] = {}, weights[kRowsOfOne] = {};
    float first[kRowsOfOne] = {}, second[kRowsOfOne] = {};
    uint32_t worst[kRowsOfOne];
    const size_t ahead = at + kRowsOfOne;
    for (size_t i = ahead; i < ahead + kRowsOfOne && i < a.n; ++i) {
      __builtin_prefetch(a.weights[i], 1, 3);
      if (Rule::kStates != 0) __builtin_prefetch(a.states[i], 1, 3);
    }
    for (uint32_t j = 0; j < n; ++j) {
      sums[j] = a.gradient_sums[(at + j) * a.gradient_stride];
      weights[j] = a.weights[at + j][0];
      if (Rule::kStates >= 1) first[j] = a.states[at + j][0];
      if (Rule::kStates >= 2) second[j] = a.states[at + j][1];
    }
    for (uint32_t j = 0; j < kRowsOfOne; ++j) {
      const float g = mean(sums[j]);
      rule.Update(g, weights[j], first[j], second[j]);
      worst[j] = Max(Max(Magnitude(g), Magnitude(weights[j])),
                     Max(Magnitude(first[j]), Magnitude(second[j])));
    }
    for (uint32_t j = 0; j < n; ++j) {
      const bool ok = worst[j] < kFirstNonFinite;
      refused += ok ? 0 : 1;
      if (a.refused != nullptr) a.refused[at + j] = ok ? 0 : 1;
      if (!ok) continue;
      a.weights[at + j][0] = weights[j];
      if (Rule::kStates >= 1) a.states[at + j][0] = first[j];
      if (Rule::kStates >= 2) a.states[at + j][1] = second[j];
    }
  }
  return refused;
}

template <typename Rule, typename Mean>
size_t ApplyMean(const ApplyArguments& a, const Mean& mean) {
  const Rule rule(a);
  switch (a.dim) {
    case 0:
      for (size_t i = 0; a.refused != nullptr && i < a.n; ++i) a.refused[i] = 0;
      return 0;
    case 1:
      return ApplyScalars(a, rule, mean);
    case 8:
      return ApplyEach<8>(a, rule, mean);
    case 16:
      return ApplyEach<16>(a, rule, mean);
    case 32:
      return ApplyEach<32>(a, rule, mean);
    default:
      return ApplyEach<0>(a, rule, mean);
  }
}

template <typename Rule>
size_t Apply(const ApplyArguments& a) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, a.examples);
  const uint32_t exponent = bits >> 23;  // the sign is 0
  const bool power_of_two = (bits & 0x7fffffu) == 0 && exponent >= 1 && exponent <= 253;
  if (power_of_two) return ApplyMean<Rule>(a, Scale{1.0f / a.examples});
  return ApplyMean<Rule>(a, Divide{a.examples});
}

}  // namespace

size_t ApplySgd(const ApplyArguments& a) { return Apply<Sgd>(a); }
size_t ApplyAdagrad(const ApplyArguments& a) { return Apply<Adagrad>(a); }
size_t ApplyAdam(const ApplyArguments& a) { return Apply<Adam>(a); }

}  // namespace strata::ops::STRATA_ISA

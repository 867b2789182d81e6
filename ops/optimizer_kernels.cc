// Built once per instruction set: no inline std or Abseil code here (isa.bzl).
#include "ops/optimizer_kernels.h"

#include "ops/optimizer_rules.h"
#include "ops/row_norm.h"

namespace strata::ops::STRATA_ISA {
namespace {

constexpr uint32_t kBlock = 256;           // floats of a row worked on before any is stored
constexpr uint32_t kVector = 16;           // floats of the widest vector
constexpr uint32_t kRowsOfOne = 32;        // rows worked on at once when dim is 1
constexpr size_t kPrefetchRows = 8;        // covers one DRAM latency at the rate of Apply
constexpr uint32_t kPrefetchFloats = 128;  // of a row; the hardware follows longer ones by itself
using rules::kFirstNonFinite;
using rules::Magnitude;
using rules::Max;

// Updated copies of one block, until it is known that all are finite.
struct Block {
  float weights[kBlock];
  float first[kBlock];
  float second[kBlock];
};

// Computes kWidth elements; results go to out (kWidth) arrays. Returns the largest magnitude of
// gradients and results.
template <uint32_t kWidth, typename Rule>
inline uint32_t Compute(const Rule& rule, float examples, const float* sums, const float* weights,
                        const float* first, const float* second, float* out_weights,
                        float* out_first, float* out_second) {
  uint32_t worst = 0;
#pragma GCC unroll 1  // g++ would unroll short bodies before it vectorises, and stay scalar
  for (uint32_t d = 0; d < kWidth; ++d) {
    const float g = sums[d] / examples;
    float w = weights[d];
    float s0 = Rule::kStates >= 1 ? first[d] : 0.0f;
    float s1 = Rule::kStates >= 2 ? second[d] : 0.0f;
    rule.Update(g, w, s0, s1);
    out_weights[d] = w;
    if (Rule::kStates >= 1) out_first[d] = s0;
    if (Rule::kStates >= 2) out_second[d] = s1;
    worst = Max(worst, Max(Max(Magnitude(g), Magnitude(w)), Max(Magnitude(s0), Magnitude(s1))));
  }
  return worst;
}

template <uint32_t kWidth>
inline void Copy(const float* from, float* to) {
  for (uint32_t d = 0; d < kWidth; ++d) to[d] = from[d];
}

// `dim` elements, kWidth <= dim <= kBlock, in whole vectors: the last one ends at dim and may
// overlap the one before, which is harmless because nothing is stored before all is computed (and
// in `block` vectors do not overlap, so that each is loaded as it was written). False when some
// element is not finite; nothing is stored then, nor when `store` is false.
template <uint32_t kWidth, typename Rule>
inline bool ApplyBlock(const Rule& rule, float examples, uint32_t dim, const float* sums,
                       float* weights, float* first, float* second, bool store) {
  static_assert(kBlock % kWidth == 0);
  Block block;
  uint32_t worst = 0;
  const uint32_t last = dim - kWidth;
  for (uint32_t to = 0; to < dim; to += kWidth) {
    const uint32_t at = to < last ? to : last;
    worst =
        Max(worst, Compute<kWidth>(rule, examples, sums + at, weights + at, first + at, second + at,
                                   block.weights + to, block.first + to, block.second + to));
  }
  if (worst >= kFirstNonFinite) return false;
  if (!store) return true;
  for (uint32_t from = 0; from < dim; from += kWidth) {
    const uint32_t at = from < last ? from : last;
    Copy<kWidth>(block.weights + from, weights + at);
    if (Rule::kStates >= 1) Copy<kWidth>(block.first + from, first + at);
    if (Rule::kStates >= 2) Copy<kWidth>(block.second + from, second + at);
  }
  return true;
}

// Rows longer than a block: a first pass sees that every element is finite, a second one stores.
// Parts are of equal size but for the last, and none is shorter than a vector.
template <typename Rule>
bool ApplyLong(const Rule& rule, float examples, uint32_t dim, const float* sums, float* weights,
               float* first, float* second) {
  constexpr uint32_t kPart = kBlock / 2;
  for (int pass = 0; pass < 2; ++pass) {
    for (uint32_t at = 0; at < dim;) {
      const uint32_t size = dim - at <= kBlock ? dim - at : kPart;
      if (!ApplyBlock<kVector>(rule, examples, size, sums + at, weights + at, first + at,
                               second + at, pass == 1)) {
        return false;
      }
      at += size;
    }
  }
  return true;
}

inline void PrefetchFloats(const float* p, uint32_t n) {
  n = n < kPrefetchFloats ? n : kPrefetchFloats;
  for (uint32_t at = 0; at < n; at += 16) __builtin_prefetch(p + at, 1, 3);
  __builtin_prefetch(p + n - 1, 1, 3);
}

// kWidth <= a.dim. kDim: a.dim if known at compile time, else 0.
template <uint32_t kWidth, uint32_t kDim, typename Rule>
size_t ApplyEach(const ApplyArguments& a, const Rule& rule) {
  const uint32_t dim = kDim != 0 ? kDim : a.dim;
  size_t refused = 0;
  for (size_t i = 0; i < a.n; ++i) {
    if (i + kPrefetchRows < a.n) {
      PrefetchFloats(a.weights[i + kPrefetchRows], dim);
      if (Rule::kStates != 0) PrefetchFloats(a.states[i + kPrefetchRows], dim * Rule::kStates);
    }
    const float* sums = a.gradient_sums + i * a.gradient_stride;
    float* weights = a.weights[i];
    // A pointer that a rule has no use for is the weights', never read.
    float* first = Rule::kStates >= 1 ? a.states[i] : weights;
    float* second = Rule::kStates >= 2 ? a.states[i] + dim : weights;
    const bool ok = dim <= kBlock ? ApplyBlock<kWidth>(rule, a.examples, dim, sums, weights, first,
                                                       second, true)
                                  : ApplyLong(rule, a.examples, dim, sums, weights, first, second);
    refused += ok ? 0 : 1;
    if (a.refused != nullptr) a.refused[i] = ok ? 0 : 1;
  }
  return refused;
}

// One accumulator a row: its update settles the row's rate, and the rest is sgd at that rate.
template <uint32_t kWidth>
size_t ApplyRowwise(const ApplyArguments& a) {
  rules::Sgd rule(a);
  size_t refused = 0;
  for (size_t i = 0; i < a.n; ++i) {
    if (i + kPrefetchRows < a.n) {
      PrefetchFloats(a.weights[i + kPrefetchRows], a.dim);
      __builtin_prefetch(a.states[i + kPrefetchRows], 1, 3);
    }
    const float* sums = a.gradient_sums + i * a.gradient_stride;
    float* w = a.weights[i];
    const float total =
        rules::GrownAccumulator(a.states[i][0], SumOfSquares(sums, a.examples, 1.0f, a.dim), a.dim);
    rule.rate = rules::RowRate(a, total);
    bool ok = Magnitude(total) < kFirstNonFinite;
    ok = ok && (a.dim <= kBlock ? ApplyBlock<kWidth>(rule, a.examples, a.dim, sums, w, w, w, true)
                                : ApplyLong(rule, a.examples, a.dim, sums, w, w, w));
    if (ok) a.states[i][0] = total;
    refused += ok ? 0 : 1;
    if (a.refused != nullptr) a.refused[i] = ok ? 0 : 1;
  }
  return refused;
}

// dim = 1: rows side by side fill the vector instead of a row's elements.
template <typename Rule>
size_t ApplyScalars(const ApplyArguments& a, const Rule& rule) {
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
      const float g = sums[j] / a.examples;
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

template <typename Rule>
size_t Apply(const ApplyArguments& a) {
  const Rule rule(a);
  if (a.dim == 0) {
    for (size_t i = 0; a.refused != nullptr && i < a.n; ++i) a.refused[i] = 0;
    return 0;
  }
  if (a.dim == 1) return ApplyScalars(a, rule);
  if (a.dim < 4) return ApplyEach<2, 0>(a, rule);
  if (a.dim < 8) return ApplyEach<4, 0>(a, rule);
  if (a.dim < 16) return ApplyEach<8, 0>(a, rule);
  if (a.dim == 16) return ApplyEach<16, 16>(a, rule);
  return ApplyEach<kVector, 0>(a, rule);
}

}  // namespace

size_t ApplySgd(const ApplyArguments& a) { return Apply<rules::Sgd>(a); }
size_t ApplyMomentum(const ApplyArguments& a) { return Apply<rules::Momentum<false>>(a); }
size_t ApplyNesterov(const ApplyArguments& a) { return Apply<rules::Momentum<true>>(a); }
size_t ApplyAdagrad(const ApplyArguments& a) { return Apply<rules::Adagrad>(a); }
size_t ApplyAdam(const ApplyArguments& a) { return Apply<rules::Adam>(a); }
size_t ApplyFtrl(const ApplyArguments& a) { return Apply<rules::Ftrl>(a); }

size_t ApplyRowwiseAdagrad(const ApplyArguments& a) {
  if (a.dim < 4) return ApplyRowwise<2>(a);
  if (a.dim < 8) return ApplyRowwise<4>(a);
  if (a.dim < 16) return ApplyRowwise<8>(a);
  return ApplyRowwise<kVector>(a);
}

}  // namespace strata::ops::STRATA_ISA

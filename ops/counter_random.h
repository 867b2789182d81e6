// Random numbers as pure functions of a counter (EXACT.md rule 7): no state, so any element can be
// computed alone, in any order, on any machine.
// Tested by tests/ops/initializer_test.cc
// Tested by tests/server/protocol/life_cycle_admission_test.cc
#ifndef STRATA_OPS_COUNTER_RANDOM_H_
#define STRATA_OPS_COUNTER_RANDOM_H_

#include <cstdint>

#include "ops/exact_math.h"
#include "ops/inline.h"

namespace strata::ops {

// The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014; Stafford's variant 13).
STRATA_HD uint64_t MixBits(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

inline constexpr uint64_t kGoldenGamma = 0x9e3779b97f4a7c15ull;  // 2^64 / golden ratio, odd

// The stream of one row: distinct keys of a table have distinct streams.
STRATA_HD uint64_t RowStream(uint64_t seed, uint32_t table, uint64_t key) {
  return MixBits(key ^ MixBits(table + MixBits(seed + kGoldenGamma)));
}

// 64 random bits for one element of a stream: SplitMix64's output number element + 1.
STRATA_HD uint64_t ElementBits(uint64_t stream, uint32_t element) {
  return MixBits(stream + (static_cast<uint64_t>(element) + 1) * kGoldenGamma);
}

// Uniform in [-1, 1), a multiple of 2^-23: 2u - 1 for the 24-bit u of EXACT.md rule 7.
STRATA_HD float SymmetricUniform(uint64_t bits) {
  return static_cast<float>(static_cast<int32_t>(bits >> 40) - 0x800000) * 0x1p-23f;
}

// Standard normal (Box and Muller, 1958) from two 24-bit uniforms; its magnitude is at most 5.77.
STRATA_HD float StandardNormal(uint64_t bits) {
  const float u = static_cast<float>(static_cast<int32_t>(bits >> 40) + 1) * 0x1p-24f;  // (0, 1]
  const uint32_t angle = static_cast<uint32_t>(bits >> 16) & 0xffffffu;
  return exact::Sqrt(-2.0f * exact::Log(u)) * exact::Cos2Pi(angle);
}

}  // namespace strata::ops

#endif  // STRATA_OPS_COUNTER_RANDOM_H_

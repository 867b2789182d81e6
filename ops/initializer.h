// Initial weights as a pure function of (seed, table, key, element): a row that was never stored
// reads the same as one that is about to be born (EXACT.md rule 7).
#ifndef STRATA_OPS_INITIALIZER_H_
#define STRATA_OPS_INITIALIZER_H_

#include <cstddef>
#include <cstdint>

namespace strata::ops {

enum class InitializerKind : uint8_t { kZero = 0, kUniform = 1, kNormal = 2 };

struct InitializerConfig {
  InitializerKind kind = InitializerKind::kZero;
  float scale = 0.0f;  // uniform: [-scale, scale); normal: standard deviation
};

// Fills out (dim) with elements first_element .. first_element + dim - 1 of the row of `key`.
void InitialRow(const InitializerConfig& config, uint64_t seed, uint32_t table, uint64_t key,
                uint32_t first_element, uint32_t dim, float* out);

}  // namespace strata::ops

#endif  // STRATA_OPS_INITIALIZER_H_

// Built once per instruction set: no inline std or Abseil code here (isa.bzl).
#include "ops/initializer_kernels.h"

#include "ops/counter_random.h"

namespace strata::ops::STRATA_ISA {
namespace {

// Always this many elements at once, also at a row's end: a row of 15 would be half scalar code
// otherwise. Elements are independent, so what is computed too much is dropped.
constexpr uint32_t kBlock = 16;

struct Uniform {
  static float Of(uint64_t bits) { return SymmetricUniform(bits); }
};
struct Normal {
  static float Of(uint64_t bits) { return StandardNormal(bits); }
};

template <typename Distribution>
inline void Block(float scale, uint64_t stream, uint32_t first_element, float* out) {
#pragma GCC unroll 1  // g++ would unroll before it vectorises, and stay scalar
  for (uint32_t d = 0; d < kBlock; ++d) {
    out[d] = scale * Distribution::Of(ElementBits(stream, first_element + d));
  }
}

template <typename Distribution>
void Fill(float scale, uint64_t stream, uint32_t first_element, uint32_t dim, float* out) {
  uint32_t at = 0;
  for (; at + kBlock <= dim; at += kBlock) {
    Block<Distribution>(scale, stream, first_element + at, out + at);
  }
  if (at == dim) return;
  float rest[kBlock];
  Block<Distribution>(scale, stream, first_element + at, rest);
  for (uint32_t d = at; d < dim; ++d) out[d] = rest[d - at];
}

}  // namespace

void FillUniform(float scale, uint64_t stream, uint32_t first_element, uint32_t dim, float* out) {
  Fill<Uniform>(scale, stream, first_element, dim, out);
}

void FillNormal(float scale, uint64_t stream, uint32_t first_element, uint32_t dim, float* out) {
  Fill<Normal>(scale, stream, first_element, dim, out);
}

}  // namespace strata::ops::STRATA_ISA

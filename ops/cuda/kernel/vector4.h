// Four floats at a time, the unit in which kernels move rows: 16 bytes where the memory is aligned
// to them, else one by one.
// Tested by tests/ops/cuda/rows/lanes_test.cc
#ifndef STRATA_OPS_CUDA_KERNEL_VECTOR4_H_
#define STRATA_OPS_CUDA_KERNEL_VECTOR4_H_

#include <cstddef>
#include <cstdint>

#include "ops/inline.h"

namespace strata::ops::gpu {

struct alignas(16) Vector4 {
  float at[4];
};

// Whether quads of rows at `p`, `stride` floats apart, can be moved whole.
inline bool IsAligned4(const void* p, size_t stride) {
  return reinterpret_cast<uintptr_t>(p) % 16 == 0 && stride % 4 == 0;
}

STRATA_HD bool IsAligned4(const float* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; }

STRATA_HD Vector4 Zero4() { return Vector4{{0.0f, 0.0f, 0.0f, 0.0f}}; }

// The first n (1 .. 4, or more: 4) of four floats, the others 0. aligned: p is a multiple of 16
// bytes.
STRATA_HD Vector4 Load4(const float* p, uint32_t n, bool aligned) {
#ifdef __CUDA_ARCH__
  if (aligned && n >= 4) {
    const float4 x = *reinterpret_cast<const float4*>(p);
    return Vector4{{x.x, x.y, x.z, x.w}};
  }
#endif
  Vector4 x = Zero4();
  for (uint32_t i = 0; i < 4; ++i) {
    if (i < n) x.at[i] = p[i];
  }
  return x;
}

// The same from memory that nothing writes while the kernel runs.
STRATA_HD Vector4 LoadConst4(const float* p, uint32_t n, bool aligned) {
#ifdef __CUDA_ARCH__
  if (aligned && n >= 4) {
    const float4 x = __ldg(reinterpret_cast<const float4*>(p));
    return Vector4{{x.x, x.y, x.z, x.w}};
  }
#endif
  return Load4(p, n, aligned);
}

STRATA_HD void Store4(const Vector4& x, float* p, uint32_t n, bool aligned) {
#ifdef __CUDA_ARCH__
  if (aligned && n >= 4) {
    *reinterpret_cast<float4*>(p) = make_float4(x.at[0], x.at[1], x.at[2], x.at[3]);
    return;
  }
#endif
  for (uint32_t i = 0; i < 4; ++i) {
    if (i < n) p[i] = x.at[i];
  }
}

}  // namespace strata::ops::gpu

#endif  // STRATA_OPS_CUDA_KERNEL_VECTOR4_H_

// The instruction-set builds of what happens to gradients before an optimizer's rule;
// optimizer.cc chooses one.
// Tested by tests/ops/optimizer_test.cc
#ifndef STRATA_OPS_GRADIENT_KERNELS_H_
#define STRATA_OPS_GRADIENT_KERNELS_H_

#include <cstddef>
#include <cstdint>

namespace strata::ops {

struct PrepareArguments {
  uint32_t dim = 0;  // >= 1
  size_t n = 0;
  const float* const* weights = nullptr;  // (n) of (dim)
  const float* gradient_sums = nullptr;   // (n, dim) at stride
  size_t gradient_stride = 0;             // floats
  float examples = 1.0f;
  float clip_value = 0.0f;  // 0: no limit
  float clip_norm = 0.0f;   // 0: no limit
  float weight_decay = 0.0f;
  float* gradients = nullptr;  // out: (n, dim)
  uint8_t* clipped = nullptr;  // out: (n), 1 where clip_value or clip_norm changed something
};

// gradients = sums / examples, clipped by value, then by norm, plus weight_decay x weights
// (optimizer.h). A row with an element that is not finite keeps such an element.
namespace v3 {
void PrepareGradients(const PrepareArguments& a);
}
namespace v4 {
void PrepareGradients(const PrepareArguments& a);
}

}  // namespace strata::ops

#endif  // STRATA_OPS_GRADIENT_KERNELS_H_

// The instruction-set builds of ApplyRows; optimizer.cc chooses one.
#ifndef STRATA_OPS_OPTIMIZER_KERNELS_H_
#define STRATA_OPS_OPTIMIZER_KERNELS_H_

#include <cstddef>
#include <cstdint>

namespace strata::ops {

// ApplyRows' arguments (optimizer.h) with every scalar worked out.
struct ApplyArguments {
  uint32_t dim = 0;
  size_t n = 0;
  float* const* weights = nullptr;       // (n) of (dim)
  float* const* states = nullptr;        // (n) of (state floats)
  const float* gradient_sums = nullptr;  // (n, dim) at stride
  size_t gradient_stride = 0;            // floats
  uint8_t* refused = nullptr;            // (n) or null
  float examples = 1.0f;                 // > 0
  float rate = 0.0f;                     // sgd, adagrad: learning rate; adam: rate x correction
  float epsilon = 0.0f;                  // adagrad, adam
  float beta1 = 0.0f, beta2 = 0.0f;      // adam
};

namespace v3 {
size_t ApplySgd(const ApplyArguments& a);
size_t ApplyAdagrad(const ApplyArguments& a);
size_t ApplyAdam(const ApplyArguments& a);
}  // namespace v3

namespace v4 {
size_t ApplySgd(const ApplyArguments& a);
size_t ApplyAdagrad(const ApplyArguments& a);
size_t ApplyAdam(const ApplyArguments& a);
}  // namespace v4

}  // namespace strata::ops

#endif  // STRATA_OPS_OPTIMIZER_KERNELS_H_

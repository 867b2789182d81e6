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
  float rate = 0.0f;                     // learning rate; adam: x correction; ftrl: alpha
  float epsilon = 0.0f;                  // adagrad, rowwise_adagrad, adam
  float beta1 = 0.0f, beta2 = 0.0f;      // adam
  float momentum = 0.0f;                 // momentum, nesterov
  float beta = 0.0f;                     // ftrl
  float l1 = 0.0f, l2 = 0.0f;            // ftrl
};

namespace v3 {
size_t ApplySgd(const ApplyArguments& a);
size_t ApplyMomentum(const ApplyArguments& a);
size_t ApplyNesterov(const ApplyArguments& a);
size_t ApplyAdagrad(const ApplyArguments& a);
size_t ApplyRowwiseAdagrad(const ApplyArguments& a);  // REQUIRES: dim >= 2
size_t ApplyAdam(const ApplyArguments& a);
size_t ApplyFtrl(const ApplyArguments& a);
}  // namespace v3

namespace v4 {
size_t ApplySgd(const ApplyArguments& a);
size_t ApplyMomentum(const ApplyArguments& a);
size_t ApplyNesterov(const ApplyArguments& a);
size_t ApplyAdagrad(const ApplyArguments& a);
size_t ApplyRowwiseAdagrad(const ApplyArguments& a);  // REQUIRES: dim >= 2
size_t ApplyAdam(const ApplyArguments& a);
size_t ApplyFtrl(const ApplyArguments& a);
}  // namespace v4

}  // namespace strata::ops

#endif  // STRATA_OPS_OPTIMIZER_KERNELS_H_

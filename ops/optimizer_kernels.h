// The instruction-set builds of ApplyRows; optimizer.cc chooses one.
// Tested by tests/ops/optimizer_test.cc
#ifndef STRATA_OPS_OPTIMIZER_KERNELS_H_
#define STRATA_OPS_OPTIMIZER_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "ops/optimizer_rules.h"

namespace strata::ops {

// ApplyRows' arguments (optimizer.h) with every scalar worked out.
struct ApplyArguments : RuleParameters {
  uint32_t dim = 0;
  size_t n = 0;
  float* const* weights = nullptr;       // (n) of (dim)
  float* const* states = nullptr;        // (n) of (state floats)
  const float* gradient_sums = nullptr;  // (n, dim) at stride
  size_t gradient_stride = 0;            // floats
  uint8_t* refused = nullptr;            // (n) or null
  float examples = 1.0f;                 // > 0
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

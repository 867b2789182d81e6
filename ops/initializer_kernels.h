// The instruction-set builds of initializer.h; initializer.cc chooses one.
// Tested by tests/ops/initializer_test.cc
#ifndef STRATA_OPS_INITIALIZER_KERNELS_H_
#define STRATA_OPS_INITIALIZER_KERNELS_H_

#include <cstdint>

namespace strata::ops {

// Elements first_element .. first_element + dim - 1 of a row's stream, times scale.
namespace v3 {
void FillUniform(float scale, uint64_t stream, uint32_t first_element, uint32_t dim, float* out);
void FillNormal(float scale, uint64_t stream, uint32_t first_element, uint32_t dim, float* out);
}  // namespace v3

namespace v4 {
void FillUniform(float scale, uint64_t stream, uint32_t first_element, uint32_t dim, float* out);
void FillNormal(float scale, uint64_t stream, uint32_t first_element, uint32_t dim, float* out);
}  // namespace v4

}  // namespace strata::ops

#endif  // STRATA_OPS_INITIALIZER_KERNELS_H_

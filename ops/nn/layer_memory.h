// What layers that own their activations share.
// Tested by tests/ops/nn/cross_test.cc
#ifndef STRATA_OPS_NN_LAYER_MEMORY_H_
#define STRATA_OPS_NN_LAYER_MEMORY_H_

#include <cstddef>
#include <cstdint>

namespace strata::ops {

// Whether a batch will be used for predictions alone or for gradients, too.
enum class Passes : uint8_t { kForward, kForwardAndBackward };

// Floats between rows of activations of a width: whole cache lines, and not a multiple of a page,
// because rows one page apart share cache sets.
inline size_t RowStride(size_t width) {
  if (width == 1) return 1;
  const size_t stride = (width + 15) / 16 * 16;
  return stride % 1024 == 0 ? stride + 16 : stride;
}

}  // namespace strata::ops

#endif  // STRATA_OPS_NN_LAYER_MEMORY_H_

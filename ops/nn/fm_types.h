// Arguments of fm.h. Plain types: kernels of every instruction set include this.
// Tested by tests/ops/nn/fm_test.cc
#ifndef STRATA_OPS_NN_FM_TYPES_H_
#define STRATA_OPS_NN_FM_TYPES_H_

#include <cstddef>
#include <cstdint>

namespace strata::ops {

// What the forward pass writes, for examples begin .. end - 1 of a batch.
struct FmOutputs {
  float* logits = nullptr;      // (examples)
  float* sums = nullptr;        // (examples, dim): sum of v x, needed by the gradients
  uint32_t* example = nullptr;  // (features): the example each belongs to
  // Where not null: v x of the feature of each field f < fields of an example at f * dim of the
  // example's row; zeros for fields that the example lacks.
  float* embeddings = nullptr;
  size_t embeddings_stride = 0;  // floats
  uint32_t fields = 0;
};

// What the gradient of a row is made of.
struct FmGradientInputs {
  const float* gradient = nullptr;    // (examples): derivative of the loss by the logit
  const float* sums = nullptr;        // (examples, dim)
  const uint32_t* example = nullptr;  // (features)
  // Where not null: derivatives of the loss by FmOutputs::embeddings, added to those of the second
  // order.
  const float* embeddings = nullptr;
  size_t embeddings_stride = 0;
  uint32_t fields = 0;
};

}  // namespace strata::ops

#endif  // STRATA_OPS_NN_FM_TYPES_H_

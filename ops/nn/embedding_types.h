// Arguments of embedding.h. Plain types: kernels of every instruction set include this.
// Tested by tests/ops/nn/embedding_test.cc
#ifndef STRATA_OPS_NN_EMBEDDING_TYPES_H_
#define STRATA_OPS_NN_EMBEDDING_TYPES_H_

#include <cstddef>
#include <cstdint>

namespace strata::ops {

// A matrix of examples by fields: the vector of field f < fields of example i, dim floats, stands
// at i * stride + f * dim. The memory belongs to the caller.
struct FieldMatrix {
  float* data = nullptr;
  size_t stride = 0;  // floats
  uint32_t fields = 0;
};

// Runs of features of one field in one example: features first[r] .. first[r + 1] - 1 are run r.
// The arrays belong to the caller.
struct FieldRuns {
  const uint32_t* first = nullptr;   // (runs + 1)
  const uint32_t* run_of = nullptr;  // (features): the run that each belongs to
};

}  // namespace strata::ops

#endif  // STRATA_OPS_NN_EMBEDDING_TYPES_H_

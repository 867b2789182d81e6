// Mixtures of experts' outputs by gates on a device: ops/nn/mixture.h for all examples and tasks at
// once, to the bit. All pointers are in device memory; everything is asynchronous.
#ifndef STRATA_OPS_CUDA_NN_MIXTURE_H_
#define STRATA_OPS_CUDA_NN_MIXTURE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/nn/layers.h"

namespace strata::ops::gpu {

// Example i's row of each matrix has vectors of `width` floats or gates of `experts` behind each
// other, so many floats apart.
struct MixtureTask {
  uint32_t examples = 0, experts = 0, tasks = 0, width = 0;
  uint32_t vector_floats = 0, gate_floats = 0;
};

// gates (examples, tasks gates): what the gates' layers gave becomes its softmax.
absl::Status MixtureWeights(CudaApi& api, const MixtureTask& task, const Matrix& gates,
                            StreamHandle stream);
// mixtures (examples, tasks vectors): the sum of the experts' vectors by each task's gate.
absl::Status MixExperts(CudaApi& api, const MixtureTask& task, const Matrix& gates,
                        const Matrix& experts, const Matrix& mixtures, StreamHandle stream);

// Derivatives by the gates' layers and by the experts, from those by the mixtures.
absl::Status GateGradients(CudaApi& api, const MixtureTask& task, const Matrix& gates,
                           const Matrix& experts, const Matrix& mixture_gradients,
                           const Matrix& gate_gradients, StreamHandle stream);
absl::Status ExpertGradients(CudaApi& api, const MixtureTask& task, const Matrix& gates,
                             const Matrix& mixture_gradients, const Matrix& expert_gradients,
                             StreamHandle stream);

}  // namespace strata::ops::gpu

#endif  // STRATA_OPS_CUDA_NN_MIXTURE_H_

// The second order of fm and deepfm for several tasks on a device: each weighs its elements in its
// own way.
//   logit_t += sum_d (1 + w_dt) 1/2 ((sum v x)_d^2 - sum (v x)_d^2)
// Tested by tests/worker/device/step_test.cc
#ifndef STRATA_WORKER_DEVICE_LAYERS_FM_HEADS_H_
#define STRATA_WORKER_DEVICE_LAYERS_FM_HEADS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/api/memory.h"
#include "ops/cuda/nn/fm.h"
#include "ops/cuda/nn/fm_heads.h"
#include "ops/cuda/nn/layers.h"
#include "ops/nn/fm_types.h"
#include "ops/nn/sparse_examples.h"
#include "worker/device/layers/buffer_list.h"
#include "worker/device/layers/layer_work.h"
#include "worker/device/layers/stages.h"
#include "worker/device/layers/step_batch.h"

namespace strata::device {

// Sums of vectors, logits and their gradients belong to the caller; (examples, 2 dim) floats in
// between to this, and of numbers (examples, dim + numbers). Everything is asynchronous, on one
// stream.
class DeviceFmHeads {
 public:
  // Both outlive it. REQUIRES: stages->heads().
  DeviceFmHeads(const Stages* stages, LayerWork* work) : stages_(*stages), work_(work) {}

  void Want(uint32_t examples, BufferList* memory);

  // Adds to the logits, which the linear terms have. `out`, but for its logits: FmTerms'.
  absl::Status Forward(const StepBatch& batch, const ops::SparseExamples& x,
                       const ops::FmOutputs& out, const ops::gpu::Matrix& logits,
                       ops::gpu::StreamHandle stream);

  // After the losses: derivatives by the terms, and the gradients of the interaction's weights and
  // of the numbers' vectors. `sums`: as Forward's out has them.
  absl::Status Backward(const StepBatch& batch, const float* sums,
                        const ops::gpu::Matrix& gradients, ops::gpu::StreamHandle stream);
  const float* term_gradients() const { return term_gradients_.as<float>(); }  // (examples, dim)

 private:
  ops::gpu::FmHeadsTask Task(const StepBatch& batch) const;
  absl::Status BackwardNumbers(const StepBatch& batch, const float* sums,
                               ops::gpu::StreamHandle stream);

  const Stages& stages_;
  LayerWork* const work_;
  ops::gpu::Buffer terms_, term_gradients_;  // (examples, dim)
  ops::gpu::Buffer scaled_;                  // (examples, dim): where numbers have vectors
  ops::gpu::Buffer squares_;                 // (examples, numbers)
  ops::gpu::Buffer square_sums_;             // (numbers, dim)
};

}  // namespace strata::device

#endif  // STRATA_WORKER_DEVICE_LAYERS_FM_HEADS_H_

// Experts, gates and towers of mmoe on a device: what worker/models' mmoe.cc does between inputs
// and logits.
// Tested by tests/worker/device/step_test.cc
#ifndef STRATA_WORKER_DEVICE_LAYERS_MIXTURE_H_
#define STRATA_WORKER_DEVICE_LAYERS_MIXTURE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "ops/cuda/api/memory.h"
#include "ops/cuda/nn/layers.h"
#include "ops/cuda/nn/mixture.h"
#include "ops/nn/layer_memory.h"
#include "worker/device/layers/buffer_list.h"
#include "worker/device/layers/layer_work.h"
#include "worker/device/layers/perceptron.h"
#include "worker/device/layers/stages.h"
#include "worker/device/layers/step_batch.h"

namespace strata::device {

// Inputs, logits and their gradients belong to the caller; to this, of an example, 2 x (experts +
// tasks) vectors of an expert's outputs, 2 gates a task, and inputs + 8 floats, beside what the
// layers have. Everything is asynchronous, on one stream.
class DeviceMixture {
 public:
  // `work` outlives it.
  DeviceMixture(const MixtureStage& stage, LayerWork* work);

  void Want(uint32_t examples, BufferList* memory);

  // in: (examples, inputs); logits: (examples, tasks).
  absl::Status Forward(const StepBatch& batch, const ops::gpu::Matrix& in,
                       const ops::gpu::Matrix& logits, ops::Passes passes,
                       ops::gpu::StreamHandle stream);
  // After Forward of the same. in_gradient: the sum of the experts', then of the gates';
  // overwritten. The tensors' gradients go to the batch's.
  absl::Status Backward(const StepBatch& batch, const ops::gpu::Matrix& in,
                        const ops::gpu::Matrix& gradients, const ops::gpu::Matrix& in_gradient,
                        ops::gpu::StreamHandle stream);

 private:
  using Layers = std::vector<std::unique_ptr<DevicePerceptron>>;

  uint32_t experts() const { return static_cast<uint32_t>(experts_.size()); }
  uint32_t tasks() const { return static_cast<uint32_t>(towers_.size()); }
  // One behind the other in a row: of experts or tasks the vectors, of tasks the gates.
  ops::gpu::Matrix Vectors(const ops::gpu::Buffer& buffer, uint32_t count) const;
  ops::gpu::Matrix Gates(const ops::gpu::Buffer& buffer) const;
  ops::gpu::Matrix Scalars(const ops::gpu::Buffer& buffer) const;
  ops::gpu::MixtureTask Task(const StepBatch& batch) const;
  absl::Status BackwardTowers(const StepBatch& batch, const ops::gpu::Matrix& gradients,
                              ops::gpu::StreamHandle stream);
  // One perceptron of the inputs, whose gradient by them begins `in_gradient` or is added to it.
  absl::Status BackwardInputs(const StepBatch& batch, DevicePerceptron& layers, bool first,
                              const DevicePerceptron::Ends& ends, ops::gpu::StreamHandle stream);

  const uint32_t inputs_, vector_floats_, gate_floats_;
  const uint32_t width_;
  LayerWork* const work_;
  Layers experts_, gates_, towers_;
  ops::gpu::Buffer outputs_, output_gradients_;    // (examples, experts' outputs)
  ops::gpu::Buffer mixtures_, mixture_gradients_;  // (examples, tasks' mixtures)
  ops::gpu::Buffer weights_, gate_gradients_;      // (examples, tasks' gates)
  // Of the layers at hand.
  ops::gpu::Buffer logit_, logit_gradient_, input_gradient_;
};

}  // namespace strata::device

#endif  // STRATA_WORKER_DEVICE_LAYERS_MIXTURE_H_

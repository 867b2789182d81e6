// A perceptron for each task over the same inputs: its one output is the task's logit.
// Tested by tests/worker/device/step_test.cc
#ifndef STRATA_WORKER_DEVICE_LAYERS_TOWERS_H_
#define STRATA_WORKER_DEVICE_LAYERS_TOWERS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/api/memory.h"
#include "ops/cuda/nn/layers.h"
#include "ops/nn/layer_memory.h"
#include "worker/device/layers/buffer_list.h"
#include "worker/device/layers/layer_work.h"
#include "worker/device/layers/perceptron.h"
#include "worker/device/layers/stages.h"
#include "worker/device/layers/step_batch.h"

namespace strata::device {

// Inputs, logits and their gradients belong to the caller; to this what each tower has in between,
// and of one tower (examples, inputs + 8) floats. Everything is asynchronous, on one stream.
class DeviceTowers {
 public:
  // `work` outlives it. REQUIRES: stages are some, of the same inputs.
  DeviceTowers(const std::vector<PerceptronStage>& stages, LayerWork* work);

  void Want(uint32_t examples, BufferList* memory);

  // in: (examples, inputs); logits: (examples, towers).
  absl::Status Forward(const StepBatch& batch, const ops::gpu::Matrix& in,
                       const ops::gpu::Matrix& logits, ops::Passes passes,
                       ops::gpu::StreamHandle stream);

  // After Forward of the same. in_gradient: the sum of the towers', task by task; overwritten. The
  // tensors' gradients go to the batch's.
  absl::Status Backward(const StepBatch& batch, const ops::gpu::Matrix& in,
                        const ops::gpu::Matrix& gradients, const ops::gpu::Matrix& in_gradient,
                        ops::gpu::StreamHandle stream);

 private:
  ops::gpu::Matrix output() const;
  ops::gpu::Matrix output_gradient() const;
  ops::gpu::Matrix input_gradient() const;

  const uint32_t inputs_;
  LayerWork* const work_;
  std::vector<std::unique_ptr<DevicePerceptron>> towers_;  // by task
  // Of the tower at hand: products want an output's column at memory that is aligned.
  ops::gpu::Buffer output_, output_gradient_, input_gradient_;
};

}  // namespace strata::device

#endif  // STRATA_WORKER_DEVICE_LAYERS_TOWERS_H_

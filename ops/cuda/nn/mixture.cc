#include "ops/cuda/nn/mixture.h"

#include <cstddef>

#include "ops/cuda/kernel/kernel.h"
#include "ops/cuda/kernel/row_block.h"
#include "ops/exact_math.h"
#include "ops/inline.h"

namespace strata::ops::gpu {
namespace {

using exact::Fma;

// Number `number` of what stands behind each other in an example's row.
STRATA_HD float* PartOf(const Matrix& m, uint32_t example, uint32_t number, uint32_t floats) {
  return m.data + size_t{example} * m.stride + size_t{number} * floats;
}

// One thread a gate of an example.
struct SoftmaxEach {
  static constexpr uint32_t kLanes = 1;
  MixtureTask task;
  Matrix gates;

  STRATA_HD_MEMBER uint64_t items() const { return uint64_t{task.examples} * task.tasks; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t item) const {
    const RowAndQuad at = SplitItem(item, task.tasks);
    float* const gate = PartOf(gates, at.row, at.quad, task.gate_floats);
    float most = gate[0];
    for (uint32_t e = 1; e < task.experts; ++e) most = most < gate[e] ? gate[e] : most;
    float sum = 0.0f;
    for (uint32_t e = 0; e < task.experts; ++e) {
      gate[e] = exact::Exp(gate[e] - most);
      sum = sum + gate[e];
    }
    for (uint32_t e = 0; e < task.experts; ++e) gate[e] = exact::Div(gate[e], sum);
  }
};

// One thread an element of what is mixed of `ins` vectors: number `in` of them weighs, for number
// `out`, what stands at out x out_step + in x in_step of the example's gates.
struct MixElements {
  static constexpr uint32_t kLanes = 1;
  uint32_t examples, outs, ins, width, vector_floats;
  uint32_t out_step, in_step;
  Matrix gates, vectors, to;

  STRATA_HD_MEMBER uint64_t items() const { return uint64_t{examples} * outs * width; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t item) const {
    const RowAndQuad at = SplitItem(item, outs * width);
    const uint32_t out = at.quad / width, d = at.quad - out * width;
    const float* const weight = PartOf(gates, at.row, out, out_step);
    const float* const vector = PartOf(vectors, at.row, 0, 0) + d;
    float sum = weight[0] * vector[0];
    for (uint32_t in = 1; in < ins; ++in) {
      sum = Fma(weight[size_t{in} * in_step], vector[size_t{in} * vector_floats], sum);
    }
    PartOf(to, at.row, out, vector_floats)[d] = sum;
  }
};

// One thread an expert's weight in a task's mixture.
struct WeightDots {
  static constexpr uint32_t kLanes = 1;
  MixtureTask task;
  Matrix experts, mixture_gradients, out;

  STRATA_HD_MEMBER uint64_t items() const {
    return uint64_t{task.examples} * task.tasks * task.experts;
  }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t item) const {
    const RowAndQuad at = SplitItem(item, task.tasks * task.experts);
    const uint32_t t = at.quad / task.experts, e = at.quad - t * task.experts;
    const float* const x = PartOf(experts, at.row, e, task.vector_floats);
    const float* const y = PartOf(mixture_gradients, at.row, t, task.vector_floats);
    float sum = 0.0f;
    for (uint32_t d = 0; d < task.width; ++d) sum = Fma(x[d], y[d], sum);
    PartOf(out, at.row, t, task.gate_floats)[e] = sum;
  }
};

// One thread a gate of an example.
struct SoftmaxGradientEach {
  static constexpr uint32_t kLanes = 1;
  MixtureTask task;
  Matrix gates, gradients;

  STRATA_HD_MEMBER uint64_t items() const { return uint64_t{task.examples} * task.tasks; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t item) const {
    const RowAndQuad at = SplitItem(item, task.tasks);
    const float* const gate = PartOf(gates, at.row, at.quad, task.gate_floats);
    float* const gradient = PartOf(gradients, at.row, at.quad, task.gate_floats);
    float sum = 0.0f;
    for (uint32_t e = 0; e < task.experts; ++e) sum = Fma(gate[e], gradient[e], sum);
    for (uint32_t e = 0; e < task.experts; ++e) gradient[e] = gate[e] * (gradient[e] - sum);
  }
};

}  // namespace

absl::Status MixtureWeights(CudaApi& api, const MixtureTask& task, const Matrix& gates,
                            StreamHandle stream) {
  const SoftmaxEach kernel = {task, gates};
  return LaunchOver(api, "mixture weights", kernel, kernel.items(), stream);
}

absl::Status MixExperts(CudaApi& api, const MixtureTask& task, const Matrix& gates,
                        const Matrix& experts, const Matrix& mixtures, StreamHandle stream) {
  const MixElements kernel = {
      task.examples,    task.tasks, task.experts, task.width, task.vector_floats,
      task.gate_floats, 1,          gates,        experts,    mixtures};
  return LaunchOver(api, "mix experts", kernel, kernel.items(), stream);
}

absl::Status GateGradients(CudaApi& api, const MixtureTask& task, const Matrix& gates,
                           const Matrix& experts, const Matrix& mixture_gradients,
                           const Matrix& gate_gradients, StreamHandle stream) {
  const WeightDots dots = {task, experts, mixture_gradients, gate_gradients};
  absl::Status status = LaunchOver(api, "mixture weight gradients", dots, dots.items(), stream);
  if (!status.ok()) return status;
  const SoftmaxGradientEach kernel = {task, gates, gate_gradients};
  return LaunchOver(api, "gate gradients", kernel, kernel.items(), stream);
}

absl::Status ExpertGradients(CudaApi& api, const MixtureTask& task, const Matrix& gates,
                             const Matrix& mixture_gradients, const Matrix& expert_gradients,
                             StreamHandle stream) {
  const MixElements kernel = {
      task.examples,    task.experts, task.tasks,        task.width,      task.vector_floats, 1,
      task.gate_floats, gates,        mixture_gradients, expert_gradients};
  return LaunchOver(api, "expert gradients", kernel, kernel.items(), stream);
}

}  // namespace strata::ops::gpu

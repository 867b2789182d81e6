#include "ops/cuda/nn/attention.h"

#include <cstddef>

#include "ops/cuda/kernel/kernel.h"
#include "ops/cuda/kernel/row_block.h"
#include "ops/exact_math.h"
#include "ops/inline.h"

namespace strata::ops::gpu {
namespace {

using exact::Fma;

STRATA_HD float* RowOf(const Matrix& m, uint32_t row) { return m.data + size_t{row} * m.stride; }

STRATA_HD uint32_t LengthOf(const AttentionTask& task, uint32_t example) {
  return task.lengths[size_t{example} * task.lengths_stride];
}

// One thread an element of a value.
struct InputElements {
  static constexpr uint32_t kLanes = 1;
  AttentionTask task;
  Matrix vectors, out;

  STRATA_HD_MEMBER uint64_t items() const { return uint64_t{task.examples} * task.most * task.dim; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t item) const {
    const RowAndQuad at = SplitItem(item, task.dim);
    const uint32_t dim = task.dim, d = at.quad;
    const uint32_t i = at.row / task.most, p = at.row - i * task.most;
    float* const to = RowOf(out, at.row) + d;
    if (p >= LengthOf(task, i)) {
      for (uint32_t part = 0; part < 4; ++part) to[size_t{part} * dim] = 0.0f;
      return;
    }
    const float* const x = RowOf(vectors, i);
    const float v = x[task.values + size_t{p} * dim + d], q = x[task.target + d];
    to[0] = v;
    to[dim] = q;
    to[2 * size_t{dim}] = v - q;
    to[3 * size_t{dim}] = v * q;
  }
};

// One thread an element of an example's sum.
struct SumElements {
  static constexpr uint32_t kLanes = 1;
  AttentionTask task;
  Matrix weights, vectors;

  STRATA_HD_MEMBER uint64_t items() const { return uint64_t{task.examples} * task.dim; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t item) const {
    const RowAndQuad at = SplitItem(item, task.dim);
    float* const x = RowOf(vectors, at.row);
    const float* const v = x + task.values + at.quad;
    const uint32_t length = LengthOf(task, at.row), first = at.row * task.most;
    float sum = 0.0f;
    for (uint32_t p = 0; p < length; ++p) {
      const float value = v[size_t{p} * task.dim], weight = *RowOf(weights, first + p);
      sum = p == 0 ? value * weight : Fma(value, weight, sum);
    }
    x[task.sum + at.quad] = sum;
  }
};

// One thread a value.
struct WeightGradientEach {
  static constexpr uint32_t kLanes = 1;
  AttentionTask task;
  Matrix vectors, gradients, out;

  STRATA_HD_MEMBER uint64_t items() const { return uint64_t{task.examples} * task.most; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t item) const {
    const RowAndQuad at = SplitItem(item, task.most);
    float sum = 0.0f;
    if (at.quad < LengthOf(task, at.row)) {
      const float* const v = RowOf(vectors, at.row) + task.values + size_t{at.quad} * task.dim;
      const float* const gradient = RowOf(gradients, at.row) + task.sum;
      for (uint32_t d = 0; d < task.dim; ++d) sum = Fma(v[d], gradient[d], sum);
    }
    *RowOf(out, static_cast<uint32_t>(item)) = sum;
  }
};

// One thread an element of an example's values and target.
struct BackwardElements {
  static constexpr uint32_t kLanes = 1;
  AttentionTask task;
  Matrix vectors, weights, inputs, gradients;

  STRATA_HD_MEMBER uint64_t items() const { return uint64_t{task.examples} * task.dim; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t item) const {
    const RowAndQuad at = SplitItem(item, task.dim);
    const size_t dim = task.dim;
    const float* const x = RowOf(vectors, at.row) + at.quad;
    float* const to = RowOf(gradients, at.row) + at.quad;
    const float q = x[task.target], by_sum = to[task.sum];
    const uint32_t length = LengthOf(task, at.row), first = at.row * task.most;
    float by_target = to[task.target];
    for (uint32_t p = 0; p < length; ++p) {
      const float* const by_inputs = RowOf(inputs, first + p) + at.quad;
      const float v = x[task.values + p * dim], a = *RowOf(weights, first + p);
      const float by_difference = by_inputs[2 * dim], by_product = by_inputs[3 * dim];
      const float by_value = Fma(by_sum, a, by_inputs[0]) + by_difference;
      to[task.values + p * dim] = Fma(by_product, q, by_value);
      by_target = by_target + Fma(by_product, v, by_inputs[dim] - by_difference);
    }
    to[task.target] = by_target;
  }
};

}  // namespace

absl::Status AttentionInputs(CudaApi& api, const AttentionTask& task, const Matrix& vectors,
                             const Matrix& out, StreamHandle stream) {
  const InputElements kernel = {task, vectors, out};
  return LaunchOver(api, "attention inputs", kernel, kernel.items(), stream);
}

absl::Status AttentionSum(CudaApi& api, const AttentionTask& task, const Matrix& weights,
                          const Matrix& vectors, StreamHandle stream) {
  const SumElements kernel = {task, weights, vectors};
  return LaunchOver(api, "attention sum", kernel, kernel.items(), stream);
}

absl::Status AttentionWeightGradients(CudaApi& api, const AttentionTask& task,
                                      const Matrix& vectors, const Matrix& gradients,
                                      const Matrix& weight_gradients, StreamHandle stream) {
  const WeightGradientEach kernel = {task, vectors, gradients, weight_gradients};
  return LaunchOver(api, "attention weight gradients", kernel, kernel.items(), stream);
}

absl::Status AttentionBackward(CudaApi& api, const AttentionTask& task, const Matrix& vectors,
                               const Matrix& weights, const Matrix& inputs, const Matrix& gradients,
                               StreamHandle stream) {
  const BackwardElements kernel = {task, vectors, weights, inputs, gradients};
  return LaunchOver(api, "attention backward", kernel, kernel.items(), stream);
}

}  // namespace strata::ops::gpu

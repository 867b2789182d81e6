#include "ops/cuda/nn/fm_heads.h"

#include <cstddef>

#include "ops/cuda/kernel/kernel.h"
#include "ops/cuda/kernel/row_block.h"
#include "ops/exact_math.h"
#include "ops/inline.h"

namespace strata::ops::gpu {
namespace {

STRATA_HD float Weight(const FmHeadsTask& task, uint32_t d, uint32_t t) {
  return 1.0f + task.weight[size_t{d} * task.tasks + t];
}

// One thread an example's task.
struct LogitEach {
  static constexpr uint32_t kLanes = 1;
  FmHeadsTask task;
  const float* terms;
  Matrix logits;

  STRATA_HD_MEMBER uint64_t items() const { return uint64_t{task.examples} * task.tasks; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t item) const {
    const RowAndQuad at = SplitItem(item, task.tasks);
    const float* const row = terms + size_t{at.row} * task.dim;
    float* const logit = logits.data + size_t{at.row} * logits.stride + at.quad;
    float sum = *logit;
    for (uint32_t d = 0; d < task.dim; ++d) {
      sum = exact::Fma(Weight(task, d, at.quad), row[d], sum);
    }
    *logit = sum;
  }
};

// One thread an element of an example.
struct GradientEach {
  static constexpr uint32_t kLanes = 1;
  FmHeadsTask task;
  Matrix gradients;
  float* out;

  STRATA_HD_MEMBER uint64_t items() const { return uint64_t{task.examples} * task.dim; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t item) const {
    const RowAndQuad at = SplitItem(item, task.dim);
    const float* const g = gradients.data + size_t{at.row} * gradients.stride;
    float sum = 0.0f;
    for (uint32_t t = 0; t < task.tasks; ++t) {
      sum = exact::Fma(g[t], Weight(task, at.quad, t), sum);
    }
    out[item] = sum;
  }
};

}  // namespace

absl::Status AddFmHeads(CudaApi& api, const FmHeadsTask& task, const float* terms,
                        const Matrix& logits, StreamHandle stream) {
  const LogitEach kernel = {task, terms, logits};
  return LaunchOver(api, "fm heads", kernel, kernel.items(), stream);
}

absl::Status FmHeadGradients(CudaApi& api, const FmHeadsTask& task, const Matrix& gradients,
                             float* out, StreamHandle stream) {
  const GradientEach kernel = {task, gradients, out};
  return LaunchOver(api, "fm head gradients", kernel, kernel.items(), stream);
}

}  // namespace strata::ops::gpu

#include "ops/cuda/nn/embedding.h"

#include "ops/cuda/kernel/kernel.h"
#include "ops/cuda/kernel/row_block.h"
#include "ops/cuda/kernel/vector4.h"
#include "ops/cuda/rows/coalesce_rows.h"
#include "ops/inline.h"
#include "ops/nn/fm_terms.h"

namespace strata::ops::gpu {
namespace {

STRATA_HD Vector4 Scale4(const Vector4& v, float value) {
  Vector4 scaled;
  for (uint32_t d = 0; d < 4; ++d) scaled.at[d] = v.at[d] * value;
  return scaled;
}

// One thread has a quad of columns of one example, in all its fields.
struct GatherExamples {
  static constexpr uint32_t kLanes = 1;
  SparseExamples x;
  uint32_t examples, dim, quads;
  FieldMatrix out;
  uint32_t* example;
  bool rows_aligned, store_aligned;

  STRATA_HD_MEMBER uint64_t items() const { return uint64_t{examples} * quads; }

  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t item) const {
    const RowAndQuad at = SplitItem(item, quads);
    const uint32_t i = at.row, column = at.quad * 4, n = dim - column;
    float* const store = out.data + i * out.stride + column;
    uint32_t next = 0;  // fields before are written
    for (uint32_t f = x.offsets[i]; f < x.offsets[i + 1]; ++f) {
      if (at.quad == 0) example[f] = i;
      const uint32_t field = FieldOf(x, f, i);
      if (field >= out.fields) continue;
      for (; next < field; ++next) Store4(Zero4(), store + size_t{next} * dim, n, store_aligned);
      const Vector4 v = LoadConst4(x.rows + x.row[f] * x.stride + column, n, rows_aligned);
      Store4(Scale4(v, ValueOf(x, f)), store + size_t{field} * dim, n, store_aligned);
      next = field + 1;
    }
    for (; next < out.fields; ++next) {
      Store4(Zero4(), store + size_t{next} * dim, n, store_aligned);
    }
  }
};

// One thread an example's task.
struct LinearEach {
  static constexpr uint32_t kLanes = 1;
  SparseExamples x;
  uint32_t examples;
  LinearTask task;
  Matrix logits;
  uint32_t* example;

  STRATA_HD_MEMBER uint64_t items() const { return uint64_t{examples} * task.tasks; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t item) const {
    const RowAndQuad at = SplitItem(item, task.tasks);
    const uint32_t i = at.row, t = at.quad;
    const float* const numeric = task.numeric_weight == nullptr ? nullptr : task.numeric_weight + t;
    logits.data[size_t{i} * logits.stride + t] =
        FmLinear(x, i, task.column + t, task.bias[t], numeric, task.tasks);
    if (example == nullptr || t > 0) return;
    for (uint32_t f = x.offsets[i]; f < x.offsets[i + 1]; ++f) example[f] = i;
  }
};

// What features contribute (ops/cuda/rows/coalesce_rows.h).
struct FieldRows {
  SparseExamples x;
  FieldMatrix gradient;
  const uint32_t* example;
  uint32_t dim;
  bool aligned;

  STRATA_HD_MEMBER Vector4 operator()(uint32_t f, uint32_t, uint32_t column, uint32_t n) const {
    const uint32_t i = example[f];
    const uint32_t field = FieldOf(x, f, i);
    // A zero times the value, as on the host.
    const Vector4 v =
        field < gradient.fields
            ? LoadConst4(gradient.data + i * gradient.stride + size_t{field} * dim + column, n,
                         aligned)
            : Zero4();
    return Scale4(v, ValueOf(x, f));
  }
};

struct TaskRows {
  const uint32_t* example;
  Matrix gradients;
  const float* values;
  bool aligned;
  STRATA_HD_MEMBER Vector4 operator()(uint32_t f, uint32_t, uint32_t column, uint32_t n) const {
    const float* const g = gradients.data + size_t{example[f]} * gradients.stride + column;
    const Vector4 v = LoadConst4(g, n, aligned);
    return values == nullptr ? v : Scale4(v, values[f]);
  }
};

struct RunRows {
  const uint32_t* run_of;
  const float* gradient;
  const float* values;
  uint32_t dim;
  bool aligned;
  STRATA_HD_MEMBER Vector4 operator()(uint32_t f, uint32_t, uint32_t column, uint32_t n) const {
    const Vector4 v = LoadConst4(gradient + size_t{run_of[f]} * dim + column, n, aligned);
    return Scale4(v, values == nullptr ? 1.0f : values[f]);
  }
};

}  // namespace

absl::Status GatherEmbeddings(CudaApi& api, const SparseExamples& x, uint32_t examples,
                              uint32_t dim, const FieldMatrix& out, uint32_t* example,
                              StreamHandle stream) {
  const uint32_t quads = (dim + 3) / 4;
  const GatherExamples kernel = {x,
                                 examples,
                                 dim,
                                 quads,
                                 out,
                                 example,
                                 IsAligned4(x.rows, x.stride),
                                 dim % 4 == 0 && IsAligned4(out.data, out.stride)};
  return LaunchOver(api, "gather embeddings", kernel, uint64_t{examples} * quads, stream);
}

absl::Status LinearForward(CudaApi& api, const SparseExamples& x, uint32_t examples,
                           const LinearTask& task, const Matrix& logits, uint32_t* example,
                           StreamHandle stream) {
  const LinearEach kernel = {x, examples, task, logits, example};
  return LaunchOver(api, "linear forward", kernel, kernel.items(), stream);
}

absl::Status EmbeddingGradients(CudaApi& api, const Coalescer& coalescer,
                                const GroupedKeys& grouped, const SparseExamples& x, uint32_t dim,
                                const FieldMatrix& gradient, const uint32_t* example,
                                const RowSums& out, StreamHandle stream) {
  const FieldRows rows = {x, gradient, example, dim,
                          dim % 4 == 0 && IsAligned4(gradient.data, gradient.stride)};
  return CoalesceRowsOf(api, coalescer, grouped, rows, dim, out.rows, out.stride, stream);
}

absl::Status WeightGradients(CudaApi& api, const Coalescer& coalescer, const GroupedKeys& grouped,
                             const SparseExamples& x, const Matrix& gradients, uint32_t tasks,
                             const uint32_t* example, const RowSums& out, StreamHandle stream) {
  const TaskRows rows = {example, gradients, x.values,
                         IsAligned4(gradients.data, gradients.stride)};
  return CoalesceRowsOf(api, coalescer, grouped, rows, tasks, out.rows, out.stride, stream);
}

absl::Status PooledGradients(CudaApi& api, const Coalescer& coalescer, const GroupedKeys& grouped,
                             const float* values, const uint32_t* run_of, const float* gradient,
                             uint32_t dim, const RowSums& out, StreamHandle stream) {
  const RunRows rows = {run_of, gradient, values, dim, IsAligned4(gradient, dim)};
  return CoalesceRowsOf(api, coalescer, grouped, rows, dim, out.rows, out.stride, stream);
}

}  // namespace strata::ops::gpu

#include "ops/cuda/nn/fm.h"

#include "ops/cuda/kernel/kernel.h"
#include "ops/cuda/kernel/row_block.h"
#include "ops/cuda/kernel/row_sum16.h"
#include "ops/cuda/kernel/vector4.h"
#include "ops/cuda/rows/coalesce_rows.h"
#include "ops/inline.h"
#include "ops/nn/fm_terms.h"

namespace strata::ops::gpu {
namespace {

// Sums over an example's vectors, a quad of columns at a time.
struct ExampleColumns {
  FmTask task;
  const float* numeric_embedding;
  FmOutputs out;
  bool rows_aligned, sums_aligned, store_aligned;

  // Writes the quad's sums and terms; (sum v x)^2 - sum (v x)^2, element by element.
  STRATA_HD_MEMBER Vector4 Columns(uint32_t i, uint32_t quad) const {
    const SparseExamples& x = task.x;
    const uint32_t column = quad * 4, n = task.dim - column;
    Vector4 sum = Zero4(), square = Zero4();
    float* const store = out.embeddings == nullptr
                             ? nullptr
                             : out.embeddings + size_t{i} * out.embeddings_stride + column;
    const uint32_t slots = store != nullptr ? out.fields : 0;
    uint32_t next = 0;  // slots before are written
    for (uint32_t f = x.offsets[i]; f < x.offsets[i + 1]; ++f) {
      const Vector4 v = LoadConst4(x.rows + x.row[f] * x.stride + column, n, rows_aligned);
      const float value = ValueOf(x, f);
      Vector4 term;
      for (uint32_t d = 0; d < 4; ++d) {
        term.at[d] = AddFmTerm(v.at[d], value, &sum.at[d], &square.at[d]);
      }
      const uint32_t slot = FieldOf(x, f, i);
      for (; next < slot && next < slots; ++next) {
        Store4(Zero4(), store + size_t{next} * task.dim, n, store_aligned);
      }
      if (slot < slots) Store4(term, store + size_t{slot} * task.dim, n, store_aligned);
      next = slot + 1;
    }
    for (; next < slots; ++next) {
      Store4(Zero4(), store + size_t{next} * task.dim, n, store_aligned);
    }
    if (numeric_embedding != nullptr) {
      const float* numeric = x.numeric + size_t{i} * x.numeric_count;
      for (uint32_t j = 0; j < x.numeric_count; ++j) {
        const Vector4 v = LoadConst4(numeric_embedding + size_t{j} * task.dim + column, n, false);
        for (uint32_t d = 0; d < 4; ++d) {
          AddFmTerm(v.at[d], numeric[j], &sum.at[d], &square.at[d]);
        }
      }
    }
    Store4(sum, out.sums + size_t{i} * task.dim + column, n, sums_aligned);
    Vector4 terms;
    for (uint32_t d = 0; d < 4; ++d) terms.at[d] = FmSecondOrder(sum.at[d], square.at[d]);
    return terms;
  }
};

// Four lanes an example: lane q has quads q, q + 4.. of the columns, and four of the sum's 16
// accumulators.
struct ForwardExamples {
  static constexpr uint32_t kLanes = 4;
  ExampleColumns columns;
  const float* bias;
  const float* numeric_weight;

  STRATA_HD_MEMBER uint64_t items() const { return columns.task.examples; }

  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group& group, uint64_t item) const {
    const SparseExamples& x = columns.task.x;
    const FmOutputs& out = columns.out;
    const uint32_t dim = columns.task.dim, quads = (dim + 3) / 4;
    const auto i = static_cast<uint32_t>(item);
    if (out.example != nullptr) {
      for (uint32_t f = x.offsets[i] + group.lane(); f < x.offsets[i + 1]; f += group.lanes()) {
        out.example[f] = i;
      }
    }
    RowSum16<Group> second_order;
    for (uint32_t quad = RowSum16<Group>::First(group); quad < quads;
         quad += RowSum16<Group>::kStep) {
      second_order.Add(quad, columns.Columns(i, quad), dim - quad * 4);
    }
    const float folded = second_order.Fold(group);
    if (group.lane() == 0) {
      out.logits[i] = FmLogit(folded, FmLinear(x, i, dim, *bias, numeric_weight, 1));
    }
  }
};

// One thread a quad of columns of an example.
struct TermExamples {
  static constexpr uint32_t kLanes = 1;
  ExampleColumns columns;
  float* terms;
  uint32_t quads;
  bool aligned;

  STRATA_HD_MEMBER uint64_t items() const { return uint64_t{columns.task.examples} * quads; }

  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t item) const {
    const SparseExamples& x = columns.task.x;
    const RowAndQuad at = SplitItem(item, quads);
    const uint32_t i = at.row, dim = columns.task.dim;
    if (columns.out.example != nullptr && at.quad == 0) {
      for (uint32_t f = x.offsets[i]; f < x.offsets[i + 1]; ++f) columns.out.example[f] = i;
    }
    Vector4 term = columns.Columns(i, at.quad);
    for (uint32_t d = 0; d < 4; ++d) term.at[d] = 0.5f * term.at[d];
    Store4(term, terms + size_t{i} * dim + at.quad * 4, dim - at.quad * 4, aligned);
  }
};

// The derivative by the second order: one of an example, or one of each element.
struct GradientOfExample {
  const float* gradient;
  STRATA_HD_MEMBER Vector4 operator()(uint32_t i, uint32_t, uint32_t) const {
    const float g = gradient[i];
    return Vector4{{g, g, g, g}};
  }
};
struct GradientOfTerms {
  const float* gradient;  // (examples, dim)
  uint32_t dim;
  bool aligned;
  STRATA_HD_MEMBER Vector4 operator()(uint32_t i, uint32_t column, uint32_t n) const {
    return LoadConst4(gradient + size_t{i} * dim + column, n, aligned);
  }
};

// Gradients of embeddings by feature (ops/cuda/rows/coalesce_rows.h).
template <typename Gradient>
struct EmbeddingRows {
  FmTask task;
  FmGradientInputs in;
  Gradient gradient_of;
  const uint32_t* keys;  // (unique): the row of each
  bool aligned;          // all of rows, sums and embeddings

  STRATA_HD_MEMBER Vector4 operator()(uint32_t f, uint32_t key, uint32_t column, uint32_t n) const {
    const SparseExamples& x = task.x;
    const uint32_t i = in.example[f];
    const float value = ValueOf(x, f);
    const Vector4 gradient = gradient_of(i, column, n);
    const Vector4 v = LoadConst4(x.rows + keys[key] * x.stride + column, n, aligned);
    const Vector4 sum = LoadConst4(in.sums + size_t{i} * task.dim + column, n, aligned);
    Vector4 out;
    if (in.embeddings == nullptr) {
      for (uint32_t d = 0; d < 4; ++d) {
        out.at[d] = FmGradientOf(v.at[d], value, sum.at[d], gradient.at[d]);
      }
      return out;
    }
    const uint32_t slot = FieldOf(x, f, i);
    const Vector4 embedding = slot < in.fields
                                  ? LoadConst4(in.embeddings + size_t{i} * in.embeddings_stride +
                                                   size_t{slot} * task.dim + column,
                                               n, aligned)
                                  : Zero4();
    for (uint32_t d = 0; d < 4; ++d) {
      out.at[d] = FmGradientOf(v.at[d], value, sum.at[d], gradient.at[d], embedding.at[d]);
    }
    return out;
  }
};

// Gradients of weights: one float a feature.
struct WeightRows {
  const uint32_t* example;
  const float* gradient;
  const float* values;
  STRATA_HD_MEMBER Vector4 operator()(uint32_t f, uint32_t, uint32_t, uint32_t) const {
    Vector4 out = Zero4();
    const float g = gradient[example[f]];
    out.at[0] = values == nullptr ? g : g * values[f];
    return out;
  }
};

ExampleColumns ColumnsOf(const FmTask& task, const float* numeric_embedding, const FmOutputs& out) {
  const bool quads = task.dim % 4 == 0;
  return {task,
          numeric_embedding,
          out,
          IsAligned4(task.x.rows, task.x.stride),
          quads && IsAligned4(out.sums, task.dim),
          quads && IsAligned4(out.embeddings, out.embeddings_stride)};
}

template <typename Gradient>
EmbeddingRows<Gradient> RowsOf(const FmTask& task, const FmGradientInputs& in,
                               const Gradient& gradient, const GroupedKeys& grouped) {
  return {task, in, gradient, static_cast<const uint32_t*>(grouped.keys),
          task.dim % 4 == 0 && IsAligned4(task.x.rows, task.x.stride) &&
              IsAligned4(in.sums, task.dim) &&
              (in.embeddings == nullptr || IsAligned4(in.embeddings, in.embeddings_stride))};
}

}  // namespace

absl::Status FmForward(CudaApi& api, const FmTask& task, const float* bias,
                       const float* numeric_weight, const float* numeric_embedding,
                       const FmOutputs& out, StreamHandle stream) {
  const ForwardExamples kernel = {ColumnsOf(task, numeric_embedding, out), bias, numeric_weight};
  return LaunchOver(api, "fm forward", kernel, task.examples, stream);
}

absl::Status FmGradients(CudaApi& api, const Coalescer& coalescer, const GroupedKeys& grouped,
                         const FmTask& task, const FmGradientInputs& in, float* out,
                         size_t out_stride, StreamHandle stream) {
  const auto rows = RowsOf(task, in, GradientOfExample{in.gradient}, grouped);
  absl::Status status =
      CoalesceRowsOf(api, coalescer, grouped, rows, task.dim, out, out_stride, stream);
  if (!status.ok()) return status;
  const WeightRows weights = {in.example, in.gradient, task.x.values};
  return CoalesceRowsOf(api, coalescer, grouped, weights, 1, out + task.dim, out_stride, stream);
}

absl::Status FmTerms(CudaApi& api, const FmTask& task, const float* numeric_embedding,
                     const FmOutputs& out, float* terms, StreamHandle stream) {
  const TermExamples kernel = {ColumnsOf(task, numeric_embedding, out), terms, (task.dim + 3) / 4,
                               task.dim % 4 == 0 && IsAligned4(terms, task.dim)};
  return LaunchOver(api, "fm terms", kernel, kernel.items(), stream);
}

absl::Status FmTermGradients(CudaApi& api, const Coalescer& coalescer, const GroupedKeys& grouped,
                             const FmTask& task, const FmGradientInputs& in,
                             const float* term_gradients, float* out, size_t out_stride,
                             StreamHandle stream) {
  const GradientOfTerms gradient = {term_gradients, task.dim,
                                    task.dim % 4 == 0 && IsAligned4(term_gradients, task.dim)};
  return CoalesceRowsOf(api, coalescer, grouped, RowsOf(task, in, gradient, grouped), task.dim, out,
                        out_stride, stream);
}

}  // namespace strata::ops::gpu

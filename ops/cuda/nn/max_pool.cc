#include "ops/cuda/nn/max_pool.h"

#include <cstddef>

#include "ops/cuda/kernel/kernel.h"
#include "ops/cuda/kernel/vector4.h"
#include "ops/cuda/rows/coalesce_rows.h"

namespace strata::ops::gpu {
namespace {

// One thread has a quad of columns of a run.
struct MaxQuads {
  static constexpr uint32_t kLanes = 1;
  SparseExamples x;
  MaxRuns runs;
  uint32_t dim, quads;
  float* out;
  uint32_t* from;
  bool rows_aligned, out_aligned;

  STRATA_HD_MEMBER uint64_t items() const { return uint64_t{runs.runs.Get()} * quads; }

  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t item) const {
    const RowAndQuad at = SplitItem(item, quads);
    if (!runs.IsMax(at.row)) return;
    const uint32_t column = at.quad * 4, n = dim - column;
    const uint32_t begin = runs.first[at.row], end = runs.first[at.row + 1];
    Vector4 most = LoadConst4(x.rows + x.row[begin] * x.stride + column, n, rows_aligned);
    uint32_t of[4] = {begin, begin, begin, begin};
    for (uint32_t f = begin + 1; f < end; ++f) {
      const Vector4 v = LoadConst4(x.rows + x.row[f] * x.stride + column, n, rows_aligned);
      STRATA_UNROLL
      for (uint32_t d = 0; d < 4; ++d) {
        if (!(most.at[d] < v.at[d])) continue;
        most.at[d] = v.at[d];
        of[d] = f;
      }
    }
    const size_t to = size_t{at.row} * dim + column;
    Store4(most, out + to, n, out_aligned);
    if (from == nullptr) return;
    STRATA_UNROLL
    for (uint32_t d = 0; d < 4; ++d) {
      if (d < n) from[to + d] = of[d];
    }
  }
};

// What features contribute (ops/cuda/rows/coalesce_rows.h).
struct MaxRunRows {
  const float* values;
  const uint32_t* run_of;
  MaxRuns runs;
  const uint32_t* from;
  const float* gradient;
  uint32_t dim;
  bool aligned;

  STRATA_HD_MEMBER Vector4 operator()(uint32_t f, uint32_t, uint32_t column, uint32_t n) const {
    const uint32_t run = run_of[f];
    const size_t at = size_t{run} * dim + column;
    Vector4 v = LoadConst4(gradient + at, n, aligned);
    const bool max = runs.IsMax(run);
    const float value = values == nullptr ? 1.0f : values[f];
    STRATA_UNROLL
    for (uint32_t d = 0; d < 4; ++d) {
      if (max && d < n && from[at + d] != f) v.at[d] = 0.0f;
      v.at[d] = v.at[d] * value;
    }
    return v;
  }
};

}  // namespace

absl::Status MaxPool(CudaApi& api, const SparseExamples& x, const MaxRuns& runs, uint32_t dim,
                     float* out, uint32_t* from, StreamHandle stream) {
  const uint32_t quads = (dim + 3) / 4;
  const MaxQuads kernel = {
      x, runs, dim, quads, out, from, IsAligned4(x.rows, x.stride), IsAligned4(out, dim)};
  return LaunchOver(api, "max pool", kernel, uint64_t{runs.runs.most} * quads, stream);
}

absl::Status MaxPooledGradients(CudaApi& api, const Coalescer& coalescer,
                                const GroupedKeys& grouped, const float* values,
                                const uint32_t* run_of, const MaxRuns& runs, const uint32_t* from,
                                const float* gradient, uint32_t dim, const RowSums& out,
                                StreamHandle stream) {
  const MaxRunRows rows = {values, run_of, runs, from, gradient, dim, IsAligned4(gradient, dim)};
  return CoalesceRowsOf(api, coalescer, grouped, rows, dim, out.rows, out.stride, stream);
}

}  // namespace strata::ops::gpu

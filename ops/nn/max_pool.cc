#include "ops/nn/max_pool.h"

#include <algorithm>
#include <cstddef>

namespace strata::ops {

void MaxPoolRow(const SparseExamples& x, MaxRun run, float* out, uint32_t* from) {
  const auto row = [&](uint32_t f) { return x.rows + x.row[f] * x.stride; };
  std::copy_n(row(run.first), x.stride, out);
  if (from != nullptr) std::fill_n(from, x.stride, run.first);
  for (uint32_t f = run.first + 1; f < run.end; ++f) {
    const float* const v = row(f);
    for (size_t d = 0; d < x.stride; ++d) {
      if (!(out[d] < v[d])) continue;
      out[d] = v[d];
      if (from != nullptr) from[d] = f;
    }
  }
}

void MaxPoolGradients(const SparseExamples& x, MaxRun run, const uint32_t* from,
                      const float* gradient, float* out) {
  std::fill_n(out, (run.end - run.first) * x.stride, 0.0f);
  for (size_t d = 0; d < x.stride; ++d) {
    out[(from[d] - run.first) * x.stride + d] = gradient[d];
  }
}

}  // namespace strata::ops

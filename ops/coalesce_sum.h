// The summation order of coalesce.h as a template over where gradients come from, so that a model
// whose gradients are cheap to compute need not store one row per feature.
// Tested by tests/ops/coalesce_test.cc
#ifndef STRATA_OPS_COALESCE_SUM_H_
#define STRATA_OPS_COALESCE_SUM_H_

#include <cstddef>
#include <cstdint>

#include "ops/inline.h"

namespace strata::ops {

// A run of unique keys and where they occur (coalesce.h).
struct KeyOccurrences {
  const uint32_t* first = nullptr;        // (unique + 1)
  const uint32_t* occurrences = nullptr;  // (features), ascending within a key
  uint32_t begin = 0, end = 0;            // keys begin .. end-1
};

inline constexpr uint32_t kCoalesceChunk = 32;     // occurrences
inline constexpr uint32_t kCoalescePrefetch = 16;  // occurrences ahead

namespace internal {

// out (kWidth) = sum of elements column .. column + kWidth - 1 over 1 <= n <= kCoalesceChunk rows.
template <uint32_t kWidth, typename Rows>
STRATA_HD void CoalesceChunk(const uint32_t* occurrences, uint32_t n, uint32_t key, uint32_t column,
                             const Rows& rows, float* out) {
  float sum[kWidth];
  const auto head = rows(occurrences[0], key);
  for (uint32_t d = 0; d < kWidth; ++d) sum[d] = head[column + d];
  for (uint32_t i = 1; i < n; ++i) {
    const auto row = rows(occurrences[i], key);
    for (uint32_t d = 0; d < kWidth; ++d) sum[d] = sum[d] + row[column + d];
  }
  for (uint32_t d = 0; d < kWidth; ++d) out[d] = sum[d];
}

// More than one chunk. The tree is built like a binary counter: `left` holds the sums of the
// complete subtrees left of the next chunk, largest first, one for each bit that is set in the
// number of chunks so far; at the end they are added from the right.
template <uint32_t kWidth, typename Rows>
STRATA_HD_CALLED void CoalesceTree(const uint32_t* occurrences, uint32_t n, uint32_t key,
                                   uint32_t column, const Rows& rows, float* out) {
  float left[32][kWidth];  // n < 2^32 occurrences are at most 2^27 chunks
  uint32_t depth = 0;
  float sum[kWidth];
  const uint32_t chunks = (n - 1) / kCoalesceChunk + 1;
  for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
    const uint32_t at = chunk * kCoalesceChunk;
    const uint32_t size = n - at < kCoalesceChunk ? n - at : kCoalesceChunk;
    CoalesceChunk<kWidth>(occurrences + at, size, key, column, rows, sum);
    for (uint32_t bits = chunk; (bits & 1u) != 0; bits >>= 1) {
      --depth;
      for (uint32_t d = 0; d < kWidth; ++d) sum[d] = left[depth][d] + sum[d];
    }
    for (uint32_t d = 0; d < kWidth; ++d) left[depth][d] = sum[d];
    ++depth;
  }
  --depth;
  for (uint32_t d = 0; d < kWidth; ++d) sum[d] = left[depth][d];
  while (depth > 0) {
    --depth;
    for (uint32_t d = 0; d < kWidth; ++d) sum[d] = left[depth][d] + sum[d];
  }
  for (uint32_t d = 0; d < kWidth; ++d) out[d] = sum[d];
}

template <uint32_t kWidth, typename Rows>
STRATA_HD void CoalesceColumns(const uint32_t* occurrences, uint32_t n, uint32_t key,
                               uint32_t column, const Rows& rows, float* out) {
  if (n <= kCoalesceChunk) {
    CoalesceChunk<kWidth>(occurrences, n, key, column, rows, out);
  } else {
    CoalesceTree<kWidth>(occurrences, n, key, column, rows, out);
  }
}

}  // namespace internal

// sums row u (at u * sum_stride, dim floats) = sum of rows(f, u) over u's occurrences f.
// rows(uint32_t feature, uint32_t key) returns something that [d] makes a float of, for d < dim: a
// pointer, or a small struct by value whose operator[] computes the element. It is asked once for
// every 16 columns. prefetch(uint32_t feature) is called some occurrences before rows is.
template <typename Rows, typename Prefetch>
STRATA_HD void CoalesceSum(const KeyOccurrences& keys, uint32_t dim, const Rows& rows,
                           const Prefetch& prefetch, float* sums, size_t sum_stride) {
  const uint32_t last = keys.first[keys.end];
  for (uint32_t u = keys.begin; u < keys.end; ++u) {
    const uint32_t at = keys.first[u];
    const uint32_t n = keys.first[u + 1] - at;
    const uint32_t* occurrences = keys.occurrences + at;
    float* out = sums + u * sum_stride;
    if (n == 0) {
      for (uint32_t d = 0; d < dim; ++d) out[d] = 0.0f;
      continue;
    }
    for (uint32_t i = at + kCoalescePrefetch; i < at + n + kCoalescePrefetch && i < last; ++i) {
      prefetch(keys.occurrences[i]);
    }
    uint32_t d = 0;
    for (; d + 16 <= dim; d += 16) {
      internal::CoalesceColumns<16>(occurrences, n, u, d, rows, out + d);
    }
    for (; d + 4 <= dim; d += 4) {
      internal::CoalesceColumns<4>(occurrences, n, u, d, rows, out + d);
    }
    for (; d < dim; ++d) internal::CoalesceColumns<1>(occurrences, n, u, d, rows, out + d);
  }
}

}  // namespace strata::ops

#endif  // STRATA_OPS_COALESCE_SUM_H_

// The sums of coalesce.h as templates over where gradients come from, so that a model whose
// gradients are cheap to compute need not store one row per feature.
//
// Rows is a trivially copyable struct with
//   Vector4 operator()(uint32_t feature, uint32_t key, uint32_t column, uint32_t n) const
// columns column .. column + n - 1 (n <= 4, the rest 0) of what feature contributes to unique key
// `key`.
// Tested by tests/ops/cuda/rows/coalesce_test.cc
#ifndef STRATA_OPS_CUDA_ROWS_COALESCE_ROWS_H_
#define STRATA_OPS_CUDA_ROWS_COALESCE_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "ops/coalesce_sum.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/kernel/kernel.h"
#include "ops/cuda/kernel/row_block.h"
#include "ops/cuda/kernel/vector4.h"
#include "ops/cuda/rows/coalesce.h"
#include "ops/cuda/rows/row_runs.h"
#include "ops/inline.h"

namespace strata::ops::gpu {

// Chunks of runs longer than one chunk: at most one and a bit per 32 features of runs of 33.
constexpr uint32_t PartialRows(uint32_t features) { return features / 16 + 1; }

STRATA_HD Vector4 Add4(const Vector4& a, const Vector4& b) {
  Vector4 sum;
  for (uint32_t d = 0; d < 4; ++d) sum.at[d] = a.at[d] + b.at[d];
  return sum;
}

// One quad of columns over 1 <= n <= kCoalesceChunk occurrences, in their order.
template <typename Rows>
STRATA_HD Vector4 SumChunk(const Rows& rows, const uint32_t* occurrences, uint32_t n, uint32_t key,
                           uint32_t column, uint32_t floats) {
  constexpr uint32_t kAhead = 4;  // rows in flight per thread
  Vector4 sum = rows(occurrences[0], key, column, floats);
  for (uint32_t at = 1; at < n; at += kAhead) {
    uint32_t feature[kAhead];
    Vector4 read[kAhead];
    STRATA_UNROLL
    for (uint32_t i = 0; i < kAhead; ++i) {
      feature[i] = at + i < n ? occurrences[at + i] : occurrences[at];
    }
    STRATA_UNROLL
    for (uint32_t i = 0; i < kAhead; ++i) read[i] = rows(feature[i], key, column, floats);
    STRATA_UNROLL
    for (uint32_t i = 0; i < kAhead; ++i) {
      if (at + i < n) sum = Add4(sum, read[i]);
    }
  }
  return sum;
}

// A quad of columns of a key's sum, or of a chunk's.
struct SumQuad {
  uint32_t row;  // the key, or the chunk
  uint32_t quad;
  uint32_t n;    // columns of the row from the quad on
  uint32_t run;  // see SeveralWidths
};

// Where sums go, and how items are spread over their quads: rows of one width, sum_stride apart.
struct OneWidth {
  uint32_t dim, quads;
  float* sums;
  size_t sum_stride;
  bool aligned;
  float* partials;  // (chunks, quads of dim), rows aligned

  STRATA_HD_MEMBER uint64_t KeyItems(const GroupedKeys& grouped) const {
    return uint64_t{*grouped.count} * quads;
  }
  STRATA_HD_MEMBER uint64_t ChunkItems(const GroupedKeys& grouped) const {
    return uint64_t{*grouped.chunks} * quads;
  }
  STRATA_HD_MEMBER SumQuad OfKey(uint64_t item) const {
    const RowAndQuad at = SplitItem(item, quads);
    return {at.row, at.quad, dim - at.quad * 4, 0};
  }
  STRATA_HD_MEMBER SumQuad OfChunk(uint64_t item) const { return OfKey(item); }
  STRATA_HD_MEMBER void StoreSum(uint32_t key, const SumQuad& at, const Vector4& x) const {
    Store4(x, sums + key * sum_stride + at.quad * 4, at.n, aligned);
  }
  STRATA_HD_MEMBER float* Partial(uint32_t chunk, uint32_t quad) const {
    return partials + (size_t{chunk} * quads + quad) * 4;
  }
};

// The same of rows as wide as their tables', as RowRuns says.
struct SeveralWidths {
  RowRuns runs;
  uint32_t most_quads;
  float* sums;
  float* partials;  // (chunks, most_quads x 4)

  STRATA_HD_MEMBER uint64_t KeyItems(const GroupedKeys&) const {
    return runs.runs[runs.tables].first_quad;
  }
  STRATA_HD_MEMBER uint64_t ChunkItems(const GroupedKeys&) const {
    return runs.runs[runs.tables].first_chunk_quad;
  }
  STRATA_HD_MEMBER SumQuad OfKey(uint64_t item) const {
    uint32_t t = 0;
    while (runs.runs[t + 1].first_quad <= item) ++t;
    const RowRun& run = runs.runs[t];
    return Within(run, item - run.first_quad, run.first_key, t);
  }
  STRATA_HD_MEMBER SumQuad OfChunk(uint64_t item) const {
    uint32_t t = 0;
    while (runs.runs[t + 1].first_chunk_quad <= item) ++t;
    const RowRun& run = runs.runs[t];
    return Within(run, item - run.first_chunk_quad, run.first_chunk, t);
  }
  STRATA_HD_MEMBER void StoreSum(uint32_t key, const SumQuad& at, const Vector4& x) const {
    float* const to = sums + runs.RowOf(at.run, key) + at.quad * 4;
    Store4(x, to, at.n, IsAligned4(to));
  }
  STRATA_HD_MEMBER float* Partial(uint32_t chunk, uint32_t quad) const {
    return partials + (size_t{chunk} * most_quads + quad) * 4;
  }

 private:
  STRATA_HD_MEMBER static SumQuad Within(const RowRun& run, uint64_t item, uint32_t first,
                                         uint32_t table) {
    const RowAndQuad at = SplitItem(item, RowQuads(run.dim));
    return {first + at.row, at.quad, run.dim - at.quad * 4, table};
  }
};

// Keys of one chunk: one thread sums a quad of columns.
template <typename Rows, typename Output>
struct SumShortRuns {
  static constexpr uint32_t kLanes = 1;
  GroupedKeys grouped;
  Rows rows;
  Output out;

  STRATA_HD_MEMBER uint64_t items() const { return out.KeyItems(grouped); }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t item) const {
    const SumQuad at = out.OfKey(item);
    const uint32_t first = grouped.first[at.row];
    const uint32_t n = grouped.first[at.row + 1] - first;
    if (n > kCoalesceChunk) return;
    if (n == 0) {  // grouped elsewhere, by someone who keeps keys that do not occur
      out.StoreSum(at.row, at, Zero4());
      return;
    }
    out.StoreSum(at.row, at,
                 SumChunk(rows, grouped.occurrences + first, n, at.row, at.quad * 4, at.n));
  }
};

// The key that chunk belongs to: the last whose chunks begin there or before.
STRATA_HD uint32_t KeyOfChunk(const GroupedKeys& grouped, uint32_t chunk) {
  uint32_t low = 0, high = *grouped.count;  // chunk_first[low] <= chunk < chunk_first[high]
  while (high - low > 1) {
    const uint32_t middle = low + (high - low) / 2;
    if (grouped.chunk_first[middle] <= chunk) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

template <typename Rows, typename Output>
struct SumChunks {
  static constexpr uint32_t kLanes = 1;
  GroupedKeys grouped;
  Rows rows;
  Output out;

  STRATA_HD_MEMBER uint64_t items() const { return out.ChunkItems(grouped); }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t item) const {
    const SumQuad at = out.OfChunk(item);
    const uint32_t key = KeyOfChunk(grouped, at.row);
    const uint32_t begin =
        grouped.first[key] + (at.row - grouped.chunk_first[key]) * kCoalesceChunk;
    const uint32_t rest = grouped.first[key + 1] - begin;
    const Vector4 sum =
        SumChunk(rows, grouped.occurrences + begin, rest < kCoalesceChunk ? rest : kCoalesceChunk,
                 key, at.quad * 4, at.n);
    Store4(sum, out.Partial(at.row, at.quad), 4, true);
  }
};

inline constexpr uint32_t kTreeWidth = 16;  // nodes that one thread adds: four levels of the tree

// Levels of the tree over a key's chunks: node i of the level below is with i + 1 where i is even;
// a last one alone passes. That is the tree that splits [a, b) at a + the largest power of two
// < b - a. Nodes stand where their first chunk stands, `apart` chunks from each other.
template <typename Output>
struct AddNodes {
  static constexpr uint32_t kLanes = 1;
  GroupedKeys grouped;
  Output out;
  uint32_t apart;

  STRATA_HD_MEMBER uint64_t items() const { return out.ChunkItems(grouped); }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t item) const {
    const SumQuad at = out.OfChunk(item);
    const uint32_t key = KeyOfChunk(grouped, at.row);
    const uint32_t chunk = at.row - grouped.chunk_first[key];
    const uint32_t chunks = grouped.chunk_first[key + 1] - grouped.chunk_first[key];
    // chunks <= apart: a level before has written the sum.
    if (chunk % (apart * kTreeWidth) != 0 || chunks <= apart) return;
    const uint32_t nodes = (chunks - chunk + apart - 1) / apart;
    Vector4 x[kTreeWidth];
    STRATA_UNROLL
    for (uint32_t i = 0; i < kTreeWidth; ++i) {
      x[i] = i < nodes ? Load4(out.Partial(at.row + i * apart, at.quad), 4, true) : Zero4();
    }
    STRATA_UNROLL
    for (uint32_t width = 1; width < kTreeWidth; width *= 2) {
      STRATA_UNROLL
      for (uint32_t i = 0; i + width < kTreeWidth; i += 2 * width) {
        if (i + width < nodes) x[i] = Add4(x[i], x[i + width]);
      }
    }
    if (chunks <= apart * kTreeWidth) {
      out.StoreSum(key, at, x[0]);
    } else {
      Store4(x[0], out.Partial(at.row, at.quad), 4, true);
    }
  }
};

// quads: at most so many of a row.
template <typename Rows, typename Output>
absl::Status CoalesceInto(CudaApi& api, const GroupedKeys& grouped, const Rows& rows,
                          const Output& out, uint32_t quads, StreamHandle stream) {
  absl::Status status =
      LaunchOver(api, "coalesce short runs", SumShortRuns<Rows, Output>{grouped, rows, out},
                 uint64_t{grouped.features} * quads, stream);
  if (grouped.features <= kCoalesceChunk || !status.ok()) return status;
  const uint64_t most = uint64_t{PartialRows(grouped.features)} * quads;
  status =
      LaunchOver(api, "coalesce chunks", SumChunks<Rows, Output>{grouped, rows, out}, most, stream);
  const uint64_t chunks = (uint64_t{grouped.features} + kCoalesceChunk - 1) / kCoalesceChunk;
  for (uint64_t apart = 1; apart < chunks && status.ok(); apart *= kTreeWidth) {
    status = LaunchOver(api, "coalesce tree",
                        AddNodes<Output>{grouped, out, static_cast<uint32_t>(apart)}, most, stream);
  }
  return status;
}

// sums row u = sum of rows(f, u) over u's occurrences f. dim <= coalescer.most_dim().
// Asynchronous.
template <typename Rows>
absl::Status CoalesceRowsOf(CudaApi& api, const Coalescer& coalescer, const GroupedKeys& grouped,
                            const Rows& rows, uint32_t dim, float* sums, size_t sum_stride,
                            StreamHandle stream) {
  if (dim > coalescer.most_dim()) {
    return absl::InvalidArgumentError("rows are longer than the coalescer was made for");
  }
  const uint32_t quads = RowQuads(dim);
  const OneWidth out = {
      dim, quads, sums, sum_stride, IsAligned4(sums, sum_stride), coalescer.partials()};
  return CoalesceInto(api, grouped, rows, out, quads, stream);
}

// The same of keys whose rows, behind each other in `sums`, are as wide as `runs` says: at most
// coalescer.most_dim(). Asynchronous.
template <typename Rows>
absl::Status CoalesceRunsOf(CudaApi& api, const Coalescer& coalescer, const GroupedKeys& grouped,
                            const Rows& rows, const RowRuns& runs, float* sums,
                            StreamHandle stream) {
  const uint32_t quads = RowQuads(coalescer.most_dim());
  const SeveralWidths out = {runs, quads, sums, coalescer.partials()};
  return CoalesceInto(api, grouped, rows, out, quads, stream);
}

}  // namespace strata::ops::gpu

#endif  // STRATA_OPS_CUDA_ROWS_COALESCE_ROWS_H_

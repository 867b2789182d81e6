#include "ops/cuda/nn/pairwise.h"

#include "absl/strings/str_cat.h"
#include "ops/cuda/kernel/kernel.h"
#include "ops/cuda/kernel/vector4.h"
#include "ops/exact_math.h"
#include "ops/inline.h"

namespace strata::ops::gpu {
namespace {

using exact::Fma;

constexpr uint32_t kTile = 3;  // vectors that a thread works on at once, in registers

// A block has one example's vectors in shared memory, in rows that begin in different banks.
struct PairwiseBlock {
  PairwiseTask task;
  bool aligned;

  STRATA_HD_MEMBER uint32_t quads() const { return (task.dim + 3) / 4; }
  STRATA_HD_MEMBER uint32_t row_floats() const { return quads() * 4 + 4; }
  STRATA_HD_MEMBER uint32_t tiles() const { return (task.vectors + kTile - 1) / kTile; }
  // Rows beyond the last vector are zeros, so that tiles are whole.
  STRATA_HD_MEMBER uint32_t rows() const { return tiles() * kTile; }
  STRATA_HD_MEMBER uint32_t pairs() const { return task.vectors * (task.vectors - 1) / 2; }

  template <typename Group>
  STRATA_HD_MEMBER void LoadVectors(const Group& group, uint64_t example, float* to) const {
    const float* from = task.t + example * task.t_stride;
    const uint32_t n = rows() * quads();
    for (uint32_t i = group.lane(); i < n; i += group.lanes()) {
      const uint32_t vector = i / quads(), quad = i - vector * quads();
      const Vector4 x = vector < task.vectors
                            ? LoadConst4(from + size_t{vector} * task.dim + quad * 4,
                                         task.dim - quad * 4, aligned)
                            : Zero4();
      Store4(x, to + vector * row_floats() + quad * 4, 4, true);
    }
  }
};

struct ForwardBlock {
  static constexpr uint32_t kLanes = kBlockLanes;
  static constexpr uint32_t kBlockThreads = 64;
  PairwiseBlock block;
  float* dots;

  STRATA_HD_MEMBER uint64_t items() const { return block.task.examples; }
  STRATA_HD_MEMBER uint32_t shared_bytes() const {
    return (block.rows() * block.row_floats() + block.pairs()) * 4;
  }

  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group& group, uint64_t example) const {
    float* const t = static_cast<float*>(group.shared());
    float* const results = t + block.rows() * block.row_floats();
    block.LoadVectors(group, example, t);
    group.Sync();
    // Tile (a, b), b <= a, number a (a + 1) / 2 + b: vectors 3a.. by vectors 3b...
    const uint32_t tiles = block.tiles() * (block.tiles() + 1) / 2;
    for (uint32_t tile = group.lane(); tile < tiles; tile += group.lanes()) {
      uint32_t a = 0;
      while ((a + 1) * (a + 2) / 2 <= tile) ++a;
      Tile(t, a * kTile, (tile - a * (a + 1) / 2) * kTile, results);
    }
    group.Sync();
    float* const out = dots + example * block.task.dots_stride;
    for (uint32_t i = group.lane(); i < block.pairs(); i += group.lanes()) out[i] = results[i];
  }

  STRATA_HD_MEMBER void Tile(const float* t, uint32_t i, uint32_t j, float* results) const {
    const uint32_t stride = block.row_floats();
    float sum[kTile][kTile] = {};
    for (uint32_t quad = 0; quad < block.quads(); ++quad) {
      Vector4 left[kTile], right[kTile];
      STRATA_UNROLL
      for (uint32_t r = 0; r < kTile; ++r) {
        left[r] = Load4(t + (i + r) * stride + quad * 4, 4, true);
        right[r] = Load4(t + (j + r) * stride + quad * 4, 4, true);
      }
      const uint32_t n = block.task.dim - quad * 4;
      STRATA_UNROLL
      for (uint32_t d = 0; d < 4; ++d) {
        if (d >= n) break;  // a zero more would turn -0 into 0
        STRATA_UNROLL
        for (uint32_t r = 0; r < kTile; ++r) {
          STRATA_UNROLL
          for (uint32_t c = 0; c < kTile; ++c) {
            sum[r][c] = Fma(left[r].at[d], right[c].at[d], sum[r][c]);
          }
        }
      }
    }
    STRATA_UNROLL
    for (uint32_t r = 0; r < kTile; ++r) {
      STRATA_UNROLL
      for (uint32_t c = 0; c < kTile; ++c) {
        const uint32_t row = i + r, column = j + c;
        if (row < block.task.vectors && column < row) {
          results[row * (row - 1) / 2 + column] = sum[r][c];
        }
      }
    }
  }
};

struct BackwardBlock {
  static constexpr uint32_t kLanes = kBlockLanes;
  static constexpr uint32_t kBlockThreads = 128;
  PairwiseBlock block;
  const float* dots_gradient;
  float* gradient;

  STRATA_HD_MEMBER uint64_t items() const { return block.task.examples; }
  STRATA_HD_MEMBER uint32_t shared_bytes() const {
    return (block.rows() * block.row_floats() + block.rows() * block.task.vectors) * 4;
  }

  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group& group, uint64_t example) const {
    const uint32_t vectors = block.task.vectors, quads = block.quads();
    float* const t = static_cast<float*>(group.shared());
    float* const square = t + block.rows() * block.row_floats();  // (rows, vectors), symmetric
    block.LoadVectors(group, example, t);
    const float* const from = dots_gradient + example * block.task.dots_stride;
    for (uint32_t i = group.lane(); i < block.rows() * vectors; i += group.lanes()) {
      const uint32_t row = i / vectors, column = i - row * vectors;
      const uint32_t high = row > column ? row : column, low = row > column ? column : row;
      square[i] = row == column || row >= vectors ? 0.0f : from[high * (high - 1) / 2 + low];
    }
    group.Sync();
    float* const out = gradient + example * block.task.t_stride;
    for (uint32_t item = group.lane(); item < block.tiles() * quads; item += group.lanes()) {
      const uint32_t tile = item / quads, quad = item - tile * quads;
      Vector4 sum[kTile] = {};
      for (uint32_t j = 0; j < vectors; ++j) {
        const Vector4 x = Load4(t + j * block.row_floats() + quad * 4, 4, true);
        STRATA_UNROLL
        for (uint32_t r = 0; r < kTile; ++r) {
          const float factor = square[(tile * kTile + r) * vectors + j];
          STRATA_UNROLL
          for (uint32_t d = 0; d < 4; ++d) sum[r].at[d] = Fma(factor, x.at[d], sum[r].at[d]);
        }
      }
      STRATA_UNROLL
      for (uint32_t r = 0; r < kTile; ++r) {
        const uint32_t row = tile * kTile + r;
        if (row >= vectors) break;
        Store4(sum[r], out + size_t{row} * block.task.dim + quad * 4, block.task.dim - quad * 4,
               block.aligned);
      }
    }
  }
};

absl::Status CheckShared(const CudaApi& api, const PairwiseTask& task, uint32_t bytes) {
  if (bytes <= api.properties().shared_bytes_per_block) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(task.vectors, " vectors of ", task.dim, " floats want ", bytes,
                   " bytes of shared memory; the device gives a block ",
                   api.properties().shared_bytes_per_block));
}

bool Aligned(const PairwiseTask& task, const float* more) {
  return task.dim % 4 == 0 && IsAligned4(task.t, task.t_stride) &&
         (more == nullptr || IsAligned4(more, task.t_stride));
}

}  // namespace

absl::Status PairwiseForward(CudaApi& api, const PairwiseTask& task, float* dots,
                             StreamHandle stream) {
  const ForwardBlock kernel = {{task, Aligned(task, nullptr)}, dots};
  absl::Status status = CheckShared(api, task, kernel.shared_bytes());
  if (!status.ok()) return status;
  return LaunchOver(api, "pairwise dots", kernel, task.examples, stream);
}

absl::Status PairwiseBackward(CudaApi& api, const PairwiseTask& task, const float* dots_gradient,
                              float* gradient, StreamHandle stream) {
  const BackwardBlock kernel = {{task, Aligned(task, gradient)}, dots_gradient, gradient};
  absl::Status status = CheckShared(api, task, kernel.shared_bytes());
  if (!status.ok()) return status;
  return LaunchOver(api, "pairwise gradients", kernel, task.examples, stream);
}

}  // namespace strata::ops::gpu

#include "ops/cuda/products/split_blas.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ops/cuda/nn/layers.h"
#include "ops/cuda/products/epilogue.h"

namespace strata::ops::gpu {
namespace {

// Of widened factors, A's (kTile, kTileK) beside B's (kTileK, kTile), as they stand.
constexpr uint32_t kTile = 1024, kTileK = 512;
static_assert(2 * sizeof(float) * kTile * kTileK <= kSplitScratchBytes);

class SplitBlas : public Blas {
 public:
  SplitBlas(Arena* arena, std::unique_ptr<Blas> fused) : arena_(arena), fused_(std::move(fused)) {}

  const std::string& path() const override { return fused_->path(); }
  const std::string& version() const override { return fused_->version(); }

  absl::Status Multiply(const MatmulShape& shape, const MatmulOperands& operands,
                        StreamHandle stream) override {
    if (split_.count(shape) == 0) {
      absl::Status status = fused_->Multiply(shape, operands, stream);
      const bool can_split = !shape.bf16_out && (shape.epilogue != MatmulEpilogue::kNone ||
                                                 shape.precision != MatmulPrecision::kFp32);
      if (!absl::IsInvalidArgument(status) || !can_split) return status;
      split_.insert(shape);
    }
    if (shape.epilogue == MatmulEpilogue::kReluGradientBias) {
      absl::Status status = CheckSums({shape.m, shape.n});
      if (status.ok()) status = TakeScratch();
      if (!status.ok()) return status;
    }
    MatmulShape bare = shape;
    bare.epilogue = MatmulEpilogue::kNone;
    bare.mask_stride = 0;
    const absl::Status status = MultiplyBare(bare, operands, stream);
    return status.ok() ? Finish(shape, operands, stream) : status;
  }

 private:
  absl::Status MultiplyBare(MatmulShape bare, const MatmulOperands& operands, StreamHandle stream) {
    if (bare_.count(bare) == 0) {
      absl::Status status = fused_->Multiply(bare, operands, stream);
      const bool other = bare.precision != MatmulPrecision::kFp32;
      if (!absl::IsInvalidArgument(status) || !other) return status;
      bare_.insert(bare);
    }
    if (bare.precision == MatmulPrecision::kBf16) return MultiplyWidened(bare, operands, stream);
    bare.precision = MatmulPrecision::kFp32;
    return fused_->Multiply(bare, operands, stream);
  }

  // Each tile of B is widened once, each of A once for each column of tiles. An element's tiles of
  // k are added in their order.
  absl::Status MultiplyWidened(const MatmulShape& s, const MatmulOperands& o, StreamHandle stream) {
    absl::Status status = TakeScratch();
    for (uint32_t l = 0; l < s.k && status.ok(); l += kTileK) {
      for (uint32_t j = 0; j < s.n && status.ok(); j += kTile) {
        MatmulShape tile = s;
        tile.precision = MatmulPrecision::kFp32;
        tile.k = std::min(kTileK, s.k - l);
        tile.n = std::min(kTile, s.n - j);
        tile.add = s.add || l > 0;
        status = Widen(o.b, s.transpose_b ? Tile{j, l, tile.n, tile.k} : Tile{l, j, tile.k, tile.n},
                       s.ldb, &tile.ldb, kTile * kTileK, stream);
        for (uint32_t i = 0; i < s.m && status.ok(); i += kTile) {
          tile.m = std::min(kTile, s.m - i);
          status =
              Widen(o.a, s.transpose_a ? Tile{l, i, tile.k, tile.m} : Tile{i, l, tile.m, tile.k},
                    s.lda, &tile.lda, 0, stream);
          if (!status.ok()) break;
          MatmulOperands there;
          there.a = scratch_.as<float>();
          there.b = scratch_.as<float>() + kTile * kTileK;
          there.c = static_cast<float*>(o.c) + size_t{i} * s.ldc + j;
          status = fused_->Multiply(tile, there, stream);
        }
      }
    }
    return status;
  }

  // Of a factor as it stands.
  struct Tile {
    uint32_t row = 0, column = 0, rows = 0, columns = 0;
  };
  // To the scratch memory from float `at` on; *stride: from the factor's to the tile's.
  absl::Status Widen(const void* factor, const Tile& tile, uint32_t factor_stride, uint32_t* stride,
                     size_t at, StreamHandle stream) {
    *stride = (tile.columns + 3) / 4 * 4;
    return WidenBf16(
        *arena_->api(), {tile.rows, tile.columns},
        static_cast<const uint16_t*>(factor) + size_t{tile.row} * factor_stride + tile.column,
        factor_stride, {scratch_.as<float>() + at, *stride}, stream);
  }

  absl::Status Finish(const MatmulShape& s, const MatmulOperands& operands, StreamHandle stream) {
    CudaApi& api = *arena_->api();
    const Extent extent = {s.m, s.n};
    const Matrix c = {static_cast<float*>(operands.c), s.ldc};
    auto* const bias = static_cast<float*>(operands.bias);
    const BitMask mask = {static_cast<uint8_t*>(operands.mask), s.mask_stride};
    switch (s.epilogue) {
      case MatmulEpilogue::kNone:
        return absl::OkStatus();
      case MatmulEpilogue::kBias:
        return AddBias(api, {extent, c, bias, false, {}}, stream);
      case MatmulEpilogue::kBiasRelu:
        return AddBias(api, {extent, c, bias, true, {}}, stream);
      case MatmulEpilogue::kBiasReluMask:
        return AddBias(api, {extent, c, bias, true, mask}, stream);
      case MatmulEpilogue::kReluGradient:
        return KeepMasked(api, extent, mask, c, stream);
      case MatmulEpilogue::kReluGradientBias: {
        absl::Status status = KeepMasked(api, extent, mask, c, stream);
        if (!status.ok()) return status;
        return ColumnSums(api, extent, c, scratch_.as<float>(), bias, stream);
      }
    }
    return absl::InternalError("an epilogue of no known kind");
  }

  static absl::Status CheckSums(const Extent& extent) {
    const size_t bytes = ColumnSumScratch(extent) * sizeof(float);
    if (bytes <= kSplitScratchBytes) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        absl::StrCat("sums of the columns of ", extent.rows, " x ", extent.columns, " need ", bytes,
                     " bytes of scratch memory; there are ", kSplitScratchBytes));
  }

  absl::Status TakeScratch() {
    if (scratch_.bytes() != 0) return absl::OkStatus();
    auto scratch = arena_->Allocate(kSplitScratchBytes);
    if (scratch.ok()) scratch_ = *std::move(scratch);
    return scratch.status();
  }

  Arena* const arena_;
  const std::unique_ptr<Blas> fused_;
  std::set<MatmulShape> split_, bare_;  // what was refused, of the latter without epilogues
  Buffer scratch_;
};

}  // namespace

std::unique_ptr<Blas> MakeSplitBlas(Arena* arena, std::unique_ptr<Blas> fused) {
  return std::make_unique<SplitBlas>(arena, std::move(fused));
}

}  // namespace strata::ops::gpu

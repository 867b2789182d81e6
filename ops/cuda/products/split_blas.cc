#include "ops/cuda/products/split_blas.h"

#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ops/cuda/nn/layers.h"
#include "ops/cuda/products/epilogue.h"

namespace strata::ops::gpu {
namespace {

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
                                                 shape.precision == MatmulPrecision::kTf32);
      if (!absl::IsInvalidArgument(status) || !can_split) return status;
      split_.insert(shape);
    }
    if (shape.epilogue == MatmulEpilogue::kReluGradientBias) {
      if (absl::Status status = TakeScratch({shape.m, shape.n}); !status.ok()) return status;
    }
    MatmulShape bare = shape;
    bare.epilogue = MatmulEpilogue::kNone;
    bare.mask_stride = 0;
    absl::Status status = fused_->Multiply(bare, operands, stream);
    if (absl::IsInvalidArgument(status) && bare.precision == MatmulPrecision::kTf32) {
      bare.precision = MatmulPrecision::kFp32;
      status = fused_->Multiply(bare, operands, stream);
    }
    return status.ok() ? Finish(shape, operands, stream) : status;
  }

 private:
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

  absl::Status TakeScratch(const Extent& extent) {
    const size_t bytes = ColumnSumScratch(extent) * sizeof(float);
    if (bytes > kSplitScratchBytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat("sums of the columns of ", extent.rows, " x ", extent.columns, " need ",
                       bytes, " bytes of scratch memory; there are ", kSplitScratchBytes));
    }
    if (scratch_.bytes() != 0) return absl::OkStatus();
    auto scratch = arena_->Allocate(kSplitScratchBytes);
    if (scratch.ok()) scratch_ = *std::move(scratch);
    return scratch.status();
  }

  Arena* const arena_;
  const std::unique_ptr<Blas> fused_;
  std::set<MatmulShape> split_;  // what was refused
  Buffer scratch_;
};

}  // namespace

std::unique_ptr<Blas> MakeSplitBlas(Arena* arena, std::unique_ptr<Blas> fused) {
  return std::make_unique<SplitBlas>(arena, std::move(fused));
}

}  // namespace strata::ops::gpu

// Matrix products in the job's precision, and sums of columns: what layers share.
// Tested by tests/worker/device/step_test.cc
#ifndef STRATA_WORKER_DEVICE_LAYERS_LAYER_WORK_H_
#define STRATA_WORKER_DEVICE_LAYERS_LAYER_WORK_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/api/memory.h"
#include "ops/cuda/nn/layers.h"
#include "ops/cuda/products/blas.h"
#include "worker/device/layers/buffer_list.h"

namespace strata::device {

// Floats between rows of a matrix of ours: whole quads.
constexpr uint32_t RowFloats(uint32_t width) { return (width + 3) / 4 * 4; }

// A factor as bf16: see LayerWork::Round. Null: not rounded.
struct RoundedFactor {
  const void* data = nullptr;
  uint32_t stride = 0;  // elements
};

// Usage: each layer tells what it will need; Want; once memory was taken, Open. Then one stream.
class LayerWork {
 public:
  LayerWork(ops::gpu::CudaApi* api, ops::gpu::MatmulPrecision precision)
      : api_(api), precision_(precision) {}

  void NeedsProduct(const ops::gpu::MatmulShape& shape);
  // Of factors that stand in more than one product: rounded once, into `to`, which
  // WantRounded asks memory for (none where the precision needs none).
  void WantRounded(const ops::gpu::Extent& extent, ops::gpu::Buffer* to, BufferList* memory) const;
  // For products of `shape`; null where those are in fp32 or TF32.
  absl::StatusOr<RoundedFactor> Round(const ops::gpu::MatmulShape& shape,
                                      const ops::gpu::Extent& extent, const ops::gpu::Matrix& from,
                                      const ops::gpu::Buffer& to,
                                      ops::gpu::StreamHandle stream) const;
  void NeedsSums(const ops::gpu::Extent& extent);
  // The least that serves all that was needed, one at a time: for bf16 two rounded factors, and
  // partial sums.
  void Want(BufferList* memory);
  void Open(std::unique_ptr<ops::gpu::Blas> blas) { blas_ = std::move(blas); }

  // The shape's precision is set here: the job's, but fp32 where a factor is a vector (little work,
  // and no alignment to speak of). Factors are floats in any case: bf16's are rounded first, but
  // for those that come rounded.
  struct Rounded {
    RoundedFactor a, b;
  };
  absl::Status Multiply(ops::gpu::MatmulShape shape, ops::gpu::MatmulOperands operands,
                        const Rounded& rounded, ops::gpu::StreamHandle stream);
  absl::Status Multiply(const ops::gpu::MatmulShape& shape,
                        const ops::gpu::MatmulOperands& operands, ops::gpu::StreamHandle stream) {
    return Multiply(shape, operands, {}, stream);
  }

  // out (left's columns, right's columns) = left transposed times right, over `rows` rows: what
  // gradients of weights are.
  struct Columns {
    ops::gpu::Matrix matrix;
    uint32_t count = 0;
  };
  void NeedsColumnProduct(uint32_t rows, uint32_t left, uint32_t right);
  absl::Status MultiplyColumns(uint32_t rows, const Columns& left, const Columns& right, float* out,
                               ops::gpu::StreamHandle stream);

  absl::Status Sums(const ops::gpu::Extent& extent, const ops::gpu::Matrix& x, float* out,
                    ops::gpu::StreamHandle stream) {
    return ColumnSums(*api_, extent, x, partials_.as<float>(), out, stream);
  }

  ops::gpu::CudaApi& api() const { return *api_; }

 private:
  absl::Status RoundFactor(const ops::gpu::Extent& extent, const RoundedFactor& known,
                           const void** factor, uint32_t* stride, const ops::gpu::Buffer& to,
                           ops::gpu::StreamHandle stream) const;

  ops::gpu::CudaApi* const api_;
  const ops::gpu::MatmulPrecision precision_;
  std::unique_ptr<ops::gpu::Blas> blas_;
  size_t most_a_ = 0, most_b_ = 0, most_partials_ = 0;  // elements
  ops::gpu::Buffer rounded_a_, rounded_b_, partials_;
};

}  // namespace strata::device

#endif  // STRATA_WORKER_DEVICE_LAYERS_LAYER_WORK_H_

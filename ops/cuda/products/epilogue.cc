#include "ops/cuda/products/epilogue.h"

#include <cstddef>

#include "ops/cuda/kernel/kernel.h"
#include "ops/cuda/kernel/row_block.h"
#include "ops/inline.h"

namespace strata::ops::gpu {
namespace {

STRATA_HD uint8_t* ByteOf(const BitMask& mask, uint32_t row, uint32_t byte) {
  return mask.bits + size_t{row} * (mask.stride / 8) + byte;
}

// One thread has eight neighbouring elements: a byte of the mask.
template <typename Body>
struct EachByte {
  static constexpr uint32_t kLanes = 1;
  Extent extent;
  Body body;

  STRATA_HD_MEMBER uint32_t bytes() const { return (extent.columns + 7) / 8; }
  STRATA_HD_MEMBER uint64_t items() const { return uint64_t{extent.rows} * bytes(); }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t item) const {
    const RowAndQuad at = SplitItem(item, bytes());
    const uint32_t first = at.quad * 8;
    const uint32_t rest = extent.columns - first;
    body(at.row, at.quad, first, rest < 8 ? rest : 8);
  }
};

struct Bias {
  BiasTask t;
  STRATA_HD_MEMBER void operator()(uint32_t row, uint32_t byte, uint32_t first, uint32_t n) const {
    float* const x = t.x.data + size_t{row} * t.x.stride + first;
    uint32_t above = 0;
    for (uint32_t j = 0; j < n; ++j) {
      const float sum = x[j] + t.bias[first + j];
      above |= (sum > 0.0f ? 1u : 0u) << j;
      x[j] = t.relu && sum <= 0.0f ? 0.0f : sum;
    }
    if (t.mask.bits != nullptr) *ByteOf(t.mask, row, byte) = static_cast<uint8_t>(above);
  }
};

struct Keep {
  BitMask mask;
  Matrix to;
  STRATA_HD_MEMBER void operator()(uint32_t row, uint32_t byte, uint32_t first, uint32_t n) const {
    float* const x = to.data + size_t{row} * to.stride + first;
    const uint32_t bits = *ByteOf(mask, row, byte);
    for (uint32_t j = 0; j < n; ++j) {
      if ((bits >> j & 1) == 0) x[j] = 0.0f;
    }
  }
};

}  // namespace

absl::Status AddBias(CudaApi& api, const BiasTask& task, StreamHandle stream) {
  const EachByte<Bias> kernel = {task.extent, {task}};
  return LaunchOver(api, "add bias", kernel, kernel.items(), stream);
}

absl::Status KeepMasked(CudaApi& api, const Extent& extent, const BitMask& mask, const Matrix& x,
                        StreamHandle stream) {
  const EachByte<Keep> kernel = {extent, {mask, x}};
  return LaunchOver(api, "keep masked", kernel, kernel.items(), stream);
}

}  // namespace strata::ops::gpu

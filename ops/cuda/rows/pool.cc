#include "ops/cuda/rows/pool.h"

#include "ops/cuda/kernel/kernel.h"
#include "ops/cuda/kernel/vector4.h"
#include "ops/exact_math.h"
#include "ops/inline.h"

namespace strata::ops::gpu {
namespace {

using exact::Fma;

constexpr uint32_t kAhead = 4;  // rows in flight per thread

// One thread pools one quad of columns of a bag: neighbouring threads read neighbouring quads.
struct PoolQuads {
  static constexpr uint32_t kLanes = 1;
  PoolArguments a;
  uint32_t quads;  // of a row
  bool aligned;

  STRATA_HD_MEMBER uint64_t items() const { return uint64_t{a.bags.Get()} * quads; }

  STRATA_HD_MEMBER Vector4 Row(uint32_t row, uint32_t column, uint32_t n) const {
    if (row == kNoRow) return Zero4();
    return LoadConst4(a.table.At(row) + column, n, aligned);
  }

  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t item) const {
    const RowAndQuad at_item = SplitItem(item, quads);
    const uint32_t bag = at_item.row, column = at_item.quad * 4;
    const uint32_t n = a.dim - column;
    const uint32_t begin = a.first != nullptr ? a.first[bag] : bag * a.bag_size;
    const uint32_t end = a.first != nullptr ? a.first[bag + 1] : begin + a.bag_size;
    Vector4 sum = Zero4();
    for (uint32_t at = begin; at < end; at += kAhead) {
      uint32_t rows[kAhead];
      float values[kAhead];
      Vector4 read[kAhead];
      STRATA_UNROLL
      for (uint32_t i = 0; i < kAhead; ++i) {
        const bool inside = at + i < end;
        rows[i] = inside ? a.row_of[at + i] : kNoRow;
        values[i] = inside && a.values != nullptr ? a.values[at + i] : 1.0f;
      }
      STRATA_UNROLL
      for (uint32_t i = 0; i < kAhead; ++i) read[i] = Row(rows[i], column, n);
      STRATA_UNROLL
      for (uint32_t i = 0; i < kAhead; ++i) {
        if (at + i >= end) continue;
        for (uint32_t d = 0; d < 4; ++d) {
          sum.at[d] = at + i == begin ? read[i].at[d] * values[i]
                                      : Fma(read[i].at[d], values[i], sum.at[d]);
        }
      }
    }
    if (a.pooling == Pooling::kMean && end > begin + 1) {
      const auto count = static_cast<float>(end - begin);
      for (uint32_t d = 0; d < 4; ++d) sum.at[d] = exact::Div(sum.at[d], count);
    }
    Store4(sum, a.out + bag * a.out_stride + column, n, aligned);
  }
};

// Bags of one feature without values: rows pass as they are. One thread moves the same quad of
// kAhead bags, a stride of the whole grid apart, so that its loads are independent.
struct GatherQuads {
  static constexpr uint32_t kLanes = 1;
  PoolArguments a;
  uint32_t quads;
  bool aligned;

  STRATA_HD_MEMBER uint32_t Runs() const { return (a.bags.Get() + kAhead - 1) / kAhead; }
  STRATA_HD_MEMBER uint64_t items() const { return uint64_t{Runs()} * quads; }

  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t item) const {
    const uint32_t bags = a.bags.Get();
    const uint32_t runs = Runs();
    const RowAndQuad at_item = SplitItem(item, quads);
    const uint32_t first = at_item.row, column = at_item.quad * 4;
    const uint32_t n = a.dim - column;
    uint32_t rows[kAhead];
    Vector4 read[kAhead];
    STRATA_UNROLL
    for (uint32_t i = 0; i < kAhead; ++i) {
      const uint32_t bag = first + i * runs;
      rows[i] = bag < bags ? a.row_of[bag] : kNoRow;
    }
    STRATA_UNROLL
    for (uint32_t i = 0; i < kAhead; ++i) {
      read[i] = rows[i] == kNoRow ? Zero4() : LoadConst4(a.table.At(rows[i]) + column, n, aligned);
    }
    STRATA_UNROLL
    for (uint32_t i = 0; i < kAhead; ++i) {
      const uint32_t bag = first + i * runs;
      if (bag < bags) Store4(read[i], a.out + bag * a.out_stride + column, n, aligned);
    }
  }
};

}  // namespace

absl::Status Pool(CudaApi& api, const PoolArguments& a, StreamHandle stream) {
  const uint32_t quads = (a.dim + 3) / 4;
  const bool aligned = IsAligned4(a.table.base, a.table.stride) && IsAligned4(a.out, a.out_stride);
  if (a.first == nullptr && a.bag_size == 1 && a.values == nullptr) {
    const uint64_t runs = (uint64_t{a.bags.most} + kAhead - 1) / kAhead;
    return LaunchOver(api, "gather", GatherQuads{a, quads, aligned}, runs * quads, stream);
  }
  return LaunchOver(api, "pool", PoolQuads{a, quads, aligned}, uint64_t{a.bags.most} * quads,
                    stream);
}

}  // namespace strata::ops::gpu

#include "tools/gpu/bars/probe.h"

#include "ops/cuda/kernel/kernel.h"
#include "ops/cuda/kernel/row_block.h"
#include "ops/cuda/kernel/vector4.h"
#include "ops/inline.h"

namespace strata::gpu_check {
namespace {

using ops::gpu::CudaApi;
using ops::gpu::Load4;
using ops::gpu::LoadConst4;
using ops::gpu::RowAndQuad;
using ops::gpu::SplitItem;
using ops::gpu::Store4;
using ops::gpu::StreamHandle;
using ops::gpu::Vector4;

constexpr uint32_t kAhead = 4;  // rows in flight per thread

STRATA_HD void AddTo(const Vector4& x, Vector4* sum) {
  for (uint32_t d = 0; d < 4; ++d) sum->at[d] += x.at[d];
}

// A sum that no rows of a bar have: what is not stored must still be read.
constexpr float kNeverSum = 1e30f;

// One thread moves the same quad of kAhead bags or rows, a stride of the whole grid apart.
struct ReadQuads {
  static constexpr uint32_t kLanes = 1;
  ReadProbe p;

  STRATA_HD_MEMBER uint32_t Runs() const { return (p.bags + kAhead - 1) / kAhead; }
  STRATA_HD_MEMBER uint64_t items() const { return uint64_t{Runs()} * p.quads; }

  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t item) const {
    const RowAndQuad at = SplitItem(item, p.quads);
    const uint32_t runs = Runs();
    Vector4 sum[kAhead];
    STRATA_UNROLL
    for (uint32_t i = 0; i < kAhead; ++i) sum[i] = ops::gpu::Zero4();
    for (uint32_t j = 0; j < p.bag_size; ++j) {
      uint32_t row[kAhead];
      Vector4 read[kAhead];
      STRATA_UNROLL
      for (uint32_t i = 0; i < kAhead; ++i) {
        const uint32_t bag = at.row + i * runs;
        row[i] = bag < p.bags ? p.row_of[size_t{bag} * p.bag_size + j] : 0;
      }
      STRATA_UNROLL
      for (uint32_t i = 0; i < kAhead; ++i) {
        read[i] = LoadConst4(p.table + (size_t{row[i]} * p.quads + at.quad) * 4, 4, true);
      }
      STRATA_UNROLL
      for (uint32_t i = 0; i < kAhead; ++i) AddTo(read[i], &sum[i]);
    }
    STRATA_UNROLL
    for (uint32_t i = 0; i < kAhead; ++i) {
      const uint32_t bag = at.row + i * runs;
      if (bag >= p.bags || (bag >= p.stored && sum[i].at[0] != kNeverSum)) continue;
      Store4(sum[i], p.out + (size_t{bag} * p.quads + at.quad) * 4, 4, true);
    }
  }
};

struct UpdateQuads {
  static constexpr uint32_t kLanes = 1;
  UpdateProbe p;

  STRATA_HD_MEMBER uint32_t Runs() const { return (p.rows + kAhead - 1) / kAhead; }
  STRATA_HD_MEMBER uint64_t items() const { return uint64_t{Runs()} * p.quads; }

  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t item) const {
    const RowAndQuad at = SplitItem(item, p.quads);
    const uint32_t runs = Runs();
    float* place[kAhead];
    Vector4 value[kAhead], sum[kAhead];
    STRATA_UNROLL
    for (uint32_t i = 0; i < kAhead; ++i) {
      const uint32_t row = at.row + i * runs;
      place[i] = row < p.rows ? p.table + (size_t{p.row_of[row]} * p.quads + at.quad) * 4 : nullptr;
    }
    STRATA_UNROLL
    for (uint32_t i = 0; i < kAhead; ++i) {
      const size_t row = at.row + i * runs;
      value[i] = sum[i] = ops::gpu::Zero4();
      if (place[i] == nullptr) continue;
      value[i] = Load4(place[i], 4, true);
      if (at.quad < p.sum_quads) {
        sum[i] = LoadConst4(p.sums + (row * p.sum_quads + at.quad) * 4, 4, true);
      }
    }
    STRATA_UNROLL
    for (uint32_t i = 0; i < kAhead; ++i) {
      if (place[i] == nullptr) continue;
      AddTo(sum[i], &value[i]);
      Store4(value[i], place[i], 4, true);
    }
  }
};

}  // namespace

absl::Status ProbeReads(CudaApi& api, const ReadProbe& probe, StreamHandle stream) {
  const uint64_t runs = (uint64_t{probe.bags} + kAhead - 1) / kAhead;
  return ops::gpu::LaunchOver(api, "probe reads", ReadQuads{probe}, runs * probe.quads, stream);
}

absl::Status ProbeUpdates(CudaApi& api, const UpdateProbe& probe, StreamHandle stream) {
  const uint64_t runs = (uint64_t{probe.rows} + kAhead - 1) / kAhead;
  return ops::gpu::LaunchOver(api, "probe updates", UpdateQuads{probe}, runs * probe.quads, stream);
}

}  // namespace strata::gpu_check

#include "ops/cuda/rows/scatter.h"

#include "ops/cuda/kernel/kernel.h"
#include "ops/cuda/kernel/vector4.h"
#include "ops/inline.h"

namespace strata::ops::gpu {
namespace {

// One thread moves a quad of a row.
struct ScatterQuads {
  static constexpr uint32_t kLanes = 1;
  ScatterArguments a;
  uint32_t quads;
  bool aligned;

  STRATA_HD_MEMBER uint64_t items() const { return uint64_t{a.count.Get()} * quads; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t item) const {
    const RowAndQuad at = SplitItem(item, quads);
    const uint32_t first = at.quad * 4;
    const uint32_t n = a.dim - first;
    const float* from = a.rows + uint64_t{at.row} * a.dim + first;
    Store4(LoadConst4(from, n, aligned), a.table.At(a.row_of[at.row]) + first, n, aligned);
  }
};

}  // namespace

absl::Status Scatter(CudaApi& api, const ScatterArguments& arguments, StreamHandle stream) {
  ScatterQuads kernel;
  kernel.a = arguments;
  kernel.quads = (arguments.dim + 3) / 4;
  kernel.aligned = IsAligned4(arguments.rows, arguments.dim) &&
                   IsAligned4(arguments.table.base, arguments.table.stride);
  return LaunchOver(api, "scatter rows", kernel, uint64_t{arguments.count.most} * kernel.quads,
                    stream);
}

}  // namespace strata::ops::gpu

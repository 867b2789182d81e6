#include "ops/cuda/rows/merge_rows.h"

#include "ops/cuda/kernel/kernel.h"
#include "ops/cuda/kernel/vector4.h"
#include "ops/inline.h"

namespace strata::ops::gpu {
namespace {

// One thread has a quad of a row.
struct MergeQuads {
  static constexpr uint32_t kLanes = 1;
  MergeArguments a;
  uint32_t quads;
  bool aligned;

  STRATA_HD_MEMBER uint64_t items() const { return uint64_t{a.count.Get()} * quads; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t item) const {
    const RowAndQuad at = SplitItem(item, quads);
    const uint32_t first = at.quad * 4, n = a.dim - first;
    const uint32_t left = a.left_of[at.row], right = a.right_of[at.row];
    Vector4 sum = Zero4(), other = Zero4();
    if (left != kNoRow) sum = LoadConst4(a.left + uint64_t{left} * a.dim + first, n, aligned);
    if (right != kNoRow) other = LoadConst4(a.right + uint64_t{right} * a.dim + first, n, aligned);
    STRATA_UNROLL
    for (uint32_t i = 0; i < 4; ++i) {
      // The absent one is the identity, not a zero.
      sum.at[i] = left == kNoRow    ? other.at[i]
                  : right == kNoRow ? sum.at[i]
                                    : sum.at[i] + other.at[i];
    }
    Store4(sum, a.out + uint64_t{at.row} * a.dim + first, n, aligned);
  }
};

}  // namespace

absl::Status MergeRows(CudaApi& api, const MergeArguments& arguments, StreamHandle stream) {
  MergeQuads kernel;
  kernel.a = arguments;
  kernel.quads = (arguments.dim + 3) / 4;
  kernel.aligned = IsAligned4(arguments.left, arguments.dim) &&
                   IsAligned4(arguments.right, arguments.dim) &&
                   IsAligned4(arguments.out, arguments.dim);
  return LaunchOver(api, "merge rows", kernel, uint64_t{arguments.count.most} * kernel.quads,
                    stream);
}

}  // namespace strata::ops::gpu

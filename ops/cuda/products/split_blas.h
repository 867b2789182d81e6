// Products of a library that has not every epilogue, or every precision, for every shape: what it
// refuses is done in parts, a bare product and kernels of our own (epilogue.h), or bare products in
// fp32 of factors that are rounded as was asked.
#ifndef STRATA_OPS_CUDA_PRODUCTS_SPLIT_BLAS_H_
#define STRATA_OPS_CUDA_PRODUCTS_SPLIT_BLAS_H_

#include <cstddef>
#include <memory>

#include "ops/cuda/api/memory.h"
#include "ops/cuda/products/blas.h"

namespace strata::ops::gpu {

// What `fused` refuses with kInvalidArgument is split from then on. Where TF32 has no bare product
// either, it is made in fp32; where bf16 has none, of factors that are bf16 still, widened tile by
// tile, and summed by an order that the shape decides. One with bf16_out is refused as `fused`
// does. Tiles need scratch memory, and so do products whose `bias` gets sums, ColumnSumScratch
// floats; so much is taken from `arena` (which outlives the result) by the first that needs any.
inline constexpr size_t kSplitScratchBytes = size_t{4} << 20;
std::unique_ptr<Blas> MakeSplitBlas(Arena* arena, std::unique_ptr<Blas> fused);

}  // namespace strata::ops::gpu

#endif  // STRATA_OPS_CUDA_PRODUCTS_SPLIT_BLAS_H_

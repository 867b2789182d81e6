// Products of a library that has not every epilogue for every shape: what it refuses is done in two
// parts, a bare product and kernels of our own (epilogue.h).
#ifndef STRATA_OPS_CUDA_PRODUCTS_SPLIT_BLAS_H_
#define STRATA_OPS_CUDA_PRODUCTS_SPLIT_BLAS_H_

#include <cstddef>
#include <memory>

#include "ops/cuda/api/memory.h"
#include "ops/cuda/products/blas.h"

namespace strata::ops::gpu {

// Products whose `bias` gets sums need scratch memory of ColumnSumScratch floats then; so much is
// taken from `arena` (which outlives the result) by the first of them. What `fused` refuses with
// kInvalidArgument is split from then on, and made in fp32 where TF32 has no bare product either;
// one with bf16_out is refused as `fused` does.
inline constexpr size_t kSplitScratchBytes = size_t{4} << 20;
std::unique_ptr<Blas> MakeSplitBlas(Arena* arena, std::unique_ptr<Blas> fused);

}  // namespace strata::ops::gpu

#endif  // STRATA_OPS_CUDA_PRODUCTS_SPLIT_BLAS_H_

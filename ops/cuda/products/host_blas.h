// blas.h on the host: products by kernels of host threads, through the same seam as all kernels, so
// that they can be captured, counted and made to fail. For what runs on HostApi.
#ifndef STRATA_OPS_CUDA_PRODUCTS_HOST_BLAS_H_
#define STRATA_OPS_CUDA_PRODUCTS_HOST_BLAS_H_

#include <memory>

#include "ops/cuda/api/api.h"
#include "ops/cuda/products/blas.h"

namespace strata::ops::gpu {

// An element of C is one sum in fp32 over ascending k, each term rounded before it is added: its
// bits depend on the shape alone. Factors are rounded as the precision says: to bf16's 8 bits by
// who made them, to TF32's 11 bits here. A mask's bit of column j is bit j % 8 of byte j / 8 of
// its row. `api` is a HostApi, and outlives the result.
std::unique_ptr<Blas> MakeHostBlas(CudaApi* api);

}  // namespace strata::ops::gpu

#endif  // STRATA_OPS_CUDA_PRODUCTS_HOST_BLAS_H_

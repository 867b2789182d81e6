// Where cuBLASLt may lie. It is never linked: a machine without it starts the same programs.
#ifndef STRATA_OPS_CUDA_PRODUCTS_BLAS_SEARCH_H_
#define STRATA_OPS_CUDA_PRODUCTS_BLAS_SEARCH_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace strata::ops::gpu {

// What dlopen is given, one after the other, until one works: `library` where it is not empty, and
// nothing else then; else the loader's default, `toolkit`/lib64 (/usr/local/cuda where empty), and
// site-packages/nvidia/*/lib of the python3 that `path` (as the variable PATH) finds first, not
// resolved: a virtual environment's is its own. Files are listed only where they exist.
std::vector<std::string> BlasCandidates(absl::string_view library, absl::string_view toolkit,
                                        absl::string_view path);

}  // namespace strata::ops::gpu

#endif  // STRATA_OPS_CUDA_PRODUCTS_BLAS_SEARCH_H_

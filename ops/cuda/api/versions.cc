#include "ops/cuda/api/versions.h"

#ifdef __CUDACC__
#include <cuda_runtime.h>
#endif

namespace strata::ops::gpu {

#ifdef __CUDACC__

namespace {

// 13010 is 13.1; 0 where there is none.
std::string Text(int version) {
  if (version <= 0) return "none";
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace

CudaVersions Versions() {
  int driver = 0, runtime = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess) driver = 0;
  if (cudaRuntimeGetVersion(&runtime) != cudaSuccess) runtime = 0;
  return {Text(driver), Text(runtime)};
}

#else

CudaVersions Versions() { return {"none", "none"}; }

#endif

}  // namespace strata::ops::gpu

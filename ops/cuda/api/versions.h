// The versions of CUDA that a process has to do with.
// Tested by tests/tools/gpu/gpu_check_test.cc
#ifndef STRATA_OPS_CUDA_API_VERSIONS_H_
#define STRATA_OPS_CUDA_API_VERSIONS_H_

#include <string>

namespace strata::ops::gpu {

struct CudaVersions {
  std::string driver;   // the newest CUDA that the driver knows, "13.0"; "none"
  std::string runtime;  // that this program was linked with; "none" where it was built without CUDA
};

// Any thread.
CudaVersions Versions();

}  // namespace strata::ops::gpu

#endif  // STRATA_OPS_CUDA_API_VERSIONS_H_

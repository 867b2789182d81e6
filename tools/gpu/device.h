// The device that gpu_check runs on, or host threads in its place.
// Tested by tests/tools/gpu/gpu_check_test.cc
#ifndef STRATA_TOOLS_GPU_DEVICE_H_
#define STRATA_TOOLS_GPU_DEVICE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/api/memory.h"
#include "ops/cuda/products/blas.h"

namespace strata::gpu_check {

// kFailedPrecondition or kNotFound: there is no device, or no driver, or the program was built
// without CUDA. `host`: host threads.
absl::StatusOr<std::unique_ptr<ops::gpu::CudaApi>> OpenCheckedDevice(bool host);

// `library`: a file, instead of the search (ops/cuda/products/blas_search.h). Where the program was
// built without CUDA: kNotFound.
absl::StatusOr<std::unique_ptr<ops::gpu::Blas>> OpenCheckedBlas(ops::gpu::Arena* arena,
                                                                const std::string& library);

// "device": name, "UUID", "memory", "driver", "CUDA runtime"...: what there is, in order.
absl::StatusOr<std::vector<std::pair<std::string, std::string>>> DeviceFacts(
    ops::gpu::CudaApi* api);

}  // namespace strata::gpu_check

#endif  // STRATA_TOOLS_GPU_DEVICE_H_

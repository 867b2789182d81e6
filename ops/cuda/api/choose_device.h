// Which device a UUID names.
#ifndef STRATA_OPS_CUDA_API_CHOOSE_DEVICE_H_
#define STRATA_OPS_CUDA_API_CHOOSE_DEVICE_H_

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ops/cuda/api/api.h"

namespace strata::ops::gpu {

// The index in `devices`, which is not empty, of the one whose UUID begins with `uuid`; "" is the
// first. kNotFound: none; names those that there are. kInvalidArgument: several; names them.
absl::StatusOr<size_t> ChooseDevice(const std::vector<DeviceProperties>& devices,
                                    absl::string_view uuid);

}  // namespace strata::ops::gpu

#endif  // STRATA_OPS_CUDA_API_CHOOSE_DEVICE_H_

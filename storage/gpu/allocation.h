// What a GPU table takes of its device's memory beyond its limit (DeviceRows::AllocateThere).
// Tested by tests/storage/gpu/host_backend_test.cc
// Tested by tests/storage/gpu/device/backend_test.cc
#ifndef STRATA_STORAGE_GPU_ALLOCATION_H_
#define STRATA_STORAGE_GPU_ALLOCATION_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace strata::storage::gpu {

// At most half of what is free, since others of the process (a co-located worker) allocate too, and
// fail where the table only does without.
inline absl::Status CheckAllocation(uint64_t bytes, uint64_t free_bytes) {
  if (bytes <= free_bytes / 2) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("beyond a GPU table's limit: ", bytes,
                                                   " bytes requested, ", free_bytes,
                                                   " bytes free, of which it takes at most half"));
}

}  // namespace strata::storage::gpu

#endif  // STRATA_STORAGE_GPU_ALLOCATION_H_

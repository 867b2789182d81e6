// The threads that own a bucket of a GPU table, as its functions see them: on a device the lanes of
// a warp, or a part of one; on the host this. What else they need of a group: every lane calls the
// same functions with the same arguments, Max returns the greatest of what the lanes gave to all of
// them, and Sync lets all see what one wrote before.
// Tested by tests/storage/gpu/bucket_test.cc
// Tested by tests/storage/gpu/device/lanes_test.cc
#ifndef STRATA_STORAGE_GPU_GROUP_H_
#define STRATA_STORAGE_GPU_GROUP_H_

#include <cstdint>

namespace strata::storage::gpu {

struct OneThread {
  constexpr uint32_t lane() const { return 0; }
  constexpr uint32_t lanes() const { return 1; }
  constexpr uint32_t Max(uint32_t x) const { return x; }
  constexpr void Sync() const {}
};

}  // namespace strata::storage::gpu

#endif  // STRATA_STORAGE_GPU_GROUP_H_

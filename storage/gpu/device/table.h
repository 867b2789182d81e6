// A GPU table's memory on a device, as the calls of calls.h, pins.h and
// sweeps.h see it.
// Tested by tests/storage/gpu/device/look_up_test.cc
// Tested by tests/storage/gpu/device/backend_test.cc
#ifndef STRATA_STORAGE_GPU_DEVICE_TABLE_H_
#define STRATA_STORAGE_GPU_DEVICE_TABLE_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "ops/cuda/api/api.h"
#include "storage/gpu/slots.h"

namespace strata::storage::gpu {

// Non-owning. Pointers are into the device's memory.
struct GpuDeviceTable {
  ops::gpu::CudaApi* api = nullptr;
  ops::gpu::StreamHandle stream = nullptr;  // of all calls: what they share is used in turn
  GpuSlots t;
  uint32_t bucket_slots = 64;  // 32, 64 or 128
  uint32_t* tiles = nullptr;   // of scans (ops/cuda/kernel/scan.h): for a batch, and for slots / 8
  void* sort_scratch = nullptr;  // of sorts: for a batch, with keys of 4 or 8 bytes
  size_t sort_scratch_bytes = 0;

  uint32_t slots() const { return t.buckets * bucket_slots; }
};

// Pairs of keys (of 4 or 8 bytes) and values, (n) each, into the order of the keys' low `bits`
// bits; equal ones keep theirs. n > 0. Asynchronous.
template <typename Key>
absl::Status SortPairs(const GpuDeviceTable& d, const Key* keys, const uint32_t* values, uint32_t n,
                       uint32_t bits, Key* sorted_keys, uint32_t* sorted_values) {
  return d.api->Sort({.keys = keys,
                      .sorted_keys = sorted_keys,
                      .values = values,
                      .sorted_values = sorted_values,
                      .n = n,
                      .key_bytes = sizeof(Key),
                      .bits = bits,
                      .scratch = d.sort_scratch,
                      .scratch_bytes = d.sort_scratch_bytes},
                     d.stream);
}

}  // namespace strata::storage::gpu

#endif  // STRATA_STORAGE_GPU_DEVICE_TABLE_H_

// Contents of GPU tables for bars, made on the device: positions whose slot is known, and positions
// that no table has yet. Tables have 2^b buckets of kBarBucketSlots.
// Tested by tests/tools/gpu/table/work_test.cc
#ifndef STRATA_TOOLS_GPU_TABLE_FILL_H_
#define STRATA_TOOLS_GPU_TABLE_FILL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ops/cuda/api/api.h"
#include "storage/gpu/bucket.h"
#include "storage/gpu/slots.h"

namespace strata::gpu_check {

inline constexpr uint32_t kBarBucketSlots = 64;

// The position that stands in slot `slot` of a table of 2^bucket_bits buckets: one of that slot's
// bucket, with a random digest. bucket_bits <= 26.
uint64_t PositionAt(uint32_t slot, uint32_t bucket_bits);
// The i-th of positions that are none of those: distinct, of random buckets. i < 2^40.
uint64_t NewPosition(uint64_t i);

// The first `rows` slots of each bucket hold the rows of their positions, dirty, with the lowest
// score. REQUIRES: rows <= kBarBucketSlots, and the table was zeroed. Asynchronous.
absl::Status FillBuckets(ops::gpu::CudaApi& api, const storage::gpu::GpuSlots& t, uint32_t rows,
                         ops::gpu::StreamHandle stream);

// Of a table so filled: slots[i] is that of its numbers[i]-th row, positions[i] what stands there.
// All (n), in the device's memory; numbers below buckets * rows. Asynchronous.
absl::Status NameRows(ops::gpu::CudaApi& api, const storage::gpu::GpuSlots& t, uint32_t rows,
                      const uint32_t* numbers, uint32_t n, uint32_t* slots, uint64_t* positions,
                      ops::gpu::StreamHandle stream);

// arrivals: (n), in the device's memory: dirty rows of NewPosition(first) and those that follow,
// each with a staging place of its own number. Asynchronous.
absl::Status FillArrivals(ops::gpu::CudaApi& api, uint64_t first, uint32_t n,
                          storage::gpu::GpuArrival* arrivals, ops::gpu::StreamHandle stream);

// slots[i] = placed[i].slot; both (n), in the device's memory. Asynchronous.
absl::Status SlotsOfPlaced(ops::gpu::CudaApi& api, const storage::gpu::GpuPlaced* placed,
                           uint32_t n, uint32_t* slots, ops::gpu::StreamHandle stream);

}  // namespace strata::gpu_check

#endif  // STRATA_TOOLS_GPU_TABLE_FILL_H_

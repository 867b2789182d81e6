// The memory of a GPU table on a device. When it is made, one piece of the device's and one of
// pinned memory of its host, for words, are taken; pinned memory for rows is set aside, and taken
// when rows are first copied: a table whose rows stay on the device has none.
//
// Bytes, for batches of n, rows t.stride bytes apart, s slots in b buckets of k, and v = min(b,
// GpuBackend::kLeaveBuckets) * k / 16 rows that may be next to leave:
//   pinned   w = 32 n + 16 v + 8192      arguments and answers of a call
//            3 n * stride                rows, in three pieces: of Read and Gather, of ReadStaged,
//                                        of Open and Put; in the last also sums of Apply, while
//                                        nothing is open
//   device   GpuShape::bytes()           the table (storage/gpu/shape.h)
//            w                           the same arguments and answers
//            24 n + 16 v + 16384         lists of a call, before and after they are sorted
//            4 n                         slots of the rows that are open
//            n * stride                  sums of an update, or rows before they are encoded
//            4 * max(n, s / 8) / 1024    tiles of scans (ops/cuda/kernel/scan.h), rounded up
//            CudaApi::SortScratchBytes   of n pairs
// each rounded up to kPiece. What AllocateThere gives comes beside it, in pieces of their own
// (GpuDevicePiece).
// Tested by tests/storage/gpu/device/backend_test.cc
#ifndef STRATA_STORAGE_GPU_DEVICE_MEMORY_H_
#define STRATA_STORAGE_GPU_DEVICE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/api/memory.h"
#include "storage/gpu/shape.h"

namespace strata::storage::gpu {

struct GpuDeviceBytes {
  static constexpr uint64_t kPiece = 256;

  // Of the table at hand, with batches of n, but for the sort's scratch.
  static GpuDeviceBytes WithoutScratch(const GpuShape& shape, uint32_t n);
  // The same with it, as the api says.
  static absl::StatusOr<GpuDeviceBytes> For(ops::gpu::CudaApi& api, const GpuShape& shape,
                                            uint32_t n);
  // The largest n <= `most` whose pinned memory fits into `pinned_bytes`; 0: none does.
  static uint32_t MostBatch(const GpuShape& shape, uint32_t most, uint64_t pinned_bytes);
  // Pinned memory of a batch of n.
  static uint64_t Pinned(const GpuShape& shape, uint32_t n);

  uint64_t table = 0, words = 0, lists = 0, opened = 0, tiles = 0, sort_scratch = 0;
  uint64_t rows = 0;  // of a batch
  uint64_t device() const { return table + words + lists + opened + rows + tiles + sort_scratch; }
  uint64_t pinned() const { return words + 3 * rows; }
};

// Pinned memory for rows of a batch: counted when it is made, taken when it is first asked for,
// kept until it is destroyed, after the device has done its work.
class GpuPinnedRows {
 public:
  // RESOURCE_EXHAUSTED names requested and free bytes, and what to do.
  static absl::StatusOr<std::unique_ptr<GpuPinnedRows>> Reserve(ops::gpu::CudaApi* api,
                                                                uint64_t bytes);
  GpuPinnedRows(const GpuPinnedRows&) = delete;
  GpuPinnedRows& operator=(const GpuPinnedRows&) = delete;
  ~GpuPinnedRows();

  // Zeroed when it is taken. An error of the runtime is INTERNAL, unless the device is lost: what
  // was promised is not there, and will not be.
  absl::StatusOr<uint8_t*> Get();

 private:
  GpuPinnedRows(ops::gpu::CudaApi* api, uint64_t bytes) : api_(api), bytes_(bytes) {}

  ops::gpu::CudaApi* const api_;
  const uint64_t bytes_;
  void* rows_ = nullptr;
};

// The pieces of both. Movable; given back with it, after the device has done its work.
struct GpuDeviceMemory {
  // RESOURCE_EXHAUSTED names requested and free bytes, and what to lower.
  static absl::StatusOr<GpuDeviceMemory> Take(ops::gpu::CudaApi* api, const GpuShape& shape,
                                              uint32_t n);

  // Whole memory, and what they are of; the arenas outlive the buffers.
  std::unique_ptr<ops::gpu::Arena> device_arena, pinned_arena;
  ops::gpu::Buffer device, pinned;

  GpuDeviceBytes bytes;
  // Of the device.
  uint8_t* table = nullptr;
  uint8_t* device_words = nullptr;
  uint8_t* lists = nullptr;
  uint32_t* opened = nullptr;
  uint8_t* call_rows = nullptr;
  uint32_t* tiles = nullptr;
  uint8_t* sort_scratch = nullptr;
  // Pinned; zeroed.
  uint8_t* host_words = nullptr;
  std::unique_ptr<GpuPinnedRows> read_rows, staged_rows, open_rows;
};

// A piece of the device's memory beside it. Movable; given back as GpuDeviceMemory is.
struct GpuDevicePiece {
  // RESOURCE_EXHAUSTED: CheckAllocation refuses it, or the device has no such piece.
  static absl::StatusOr<GpuDevicePiece> Take(ops::gpu::CudaApi* api, uint64_t bytes);

  std::unique_ptr<ops::gpu::Arena> arena;  // outlives the buffer
  ops::gpu::Buffer buffer;
};

// Arrays of one call, one behind the other from the start of a piece, at multiples of 16.
class GpuPieceCutter {
 public:
  template <typename T>
  size_t Take(size_t n) {
    const size_t at = bytes_;
    bytes_ += (n * sizeof(T) + 15) / 16 * 16;
    return at;
  }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_ = 0;
};

}  // namespace strata::storage::gpu

#endif  // STRATA_STORAGE_GPU_DEVICE_MEMORY_H_

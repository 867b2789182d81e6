// Memory of a device for rows that a worker exchanges with servers of its own process
// (proto/wire/device_values.h): weights that they write there, gradient sums that they read.
#ifndef STRATA_WORKER_DEVICE_ROW_MEMORY_H_
#define STRATA_WORKER_DEVICE_ROW_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ops/cuda/api/api.h"

namespace strata::device {

// The sum of two lists of rows: see ops/cuda/rows/merge_rows.h.
struct RowMerge {
  // Of Take; they overlap nowhere.
  const float* left = nullptr;         // (any, dim)
  const float* right = nullptr;        // (any, dim)
  std::span<const uint32_t> left_of;   // (rows of out), on the host
  std::span<const uint32_t> right_of;  // (rows of out), on the host
  uint32_t dim = 0;
  float* out = nullptr;  // (rows, dim)
};

// Any thread; merges and copies take turns. Rows may outlive it.
class RowMemory {
 public:
  // `device` as in DeviceValues. `api` outlives this and all of its rows; `kept`, which may be
  // null, is kept as long as them.
  static absl::StatusOr<std::unique_ptr<RowMemory>> Make(ops::gpu::CudaApi* api, std::string device,
                                                         std::shared_ptr<const void> kept);
  virtual ~RowMemory() = default;

  virtual const std::string& device() const = 0;

  // Room for that many floats, of contents unspecified. It comes back, to be given again, when its
  // last owner drops it, on whatever thread; nobody may use it there any more then. Memory is made
  // a quarter larger than what is asked for, where there is so much, and taken from the runtime
  // when no piece that came back is large enough; one of those makes room. So there are never more
  // pieces than were in use at a time, and a job's steps allocate until the largest step has been.
  // RESOURCE_EXHAUSTED: names the bytes.
  virtual absl::StatusOr<std::shared_ptr<float>> Take(size_t floats) = 0;

  // Each waits for the device once (copies: once for each kCopyFloats floats).
  static constexpr size_t kCopyFloats = size_t{1} << 20;
  virtual absl::Status Merge(const RowMerge& merge) = 0;
  virtual absl::Status Upload(const float* from, size_t floats, float* there) = 0;
  virtual absl::Status Download(const float* there, size_t floats, float* to) = 0;

  // Held now: in use, or to be given again.
  virtual size_t device_bytes() const = 0;
};

}  // namespace strata::device

#endif  // STRATA_WORKER_DEVICE_ROW_MEMORY_H_

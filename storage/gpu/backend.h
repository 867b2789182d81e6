// The side of a GPU table that touches its memory: of a device, or of the host itself, which runs
// the same functions (bucket.h) on threads.
// Tested by tests/storage/gpu/host_backend_test.cc
// Tested by tests/storage/gpu/device/backend_test.cc
#ifndef STRATA_STORAGE_GPU_BACKEND_H_
#define STRATA_STORAGE_GPU_BACKEND_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ops/codec.h"
#include "proto/core/ids.h"
#include "storage/gpu/bucket.h"
#include "storage/gpu/calls.h"
#include "storage/gpu/score.h"
#include "storage/gpu/shape.h"
#include "storage/row/births.h"
#include "storage/row/update.h"

namespace strata::storage::gpu {

struct GpuPinned {
  size_t through = 0;  // slots gone through
  size_t rows = 0;     // of them pinned for the first time
};

// One table's memory, zeroed when made, and the calls on it. One writer, as RowTable. Slots are
// numbers of slots that hold a row, unless said otherwise, and distinct within a call; places are
// staging places. Each call is over when it returns. Errors are those of the device, and final:
// none after which the table could go on. What a call answers does not depend on the backend, nor
// on how many threads it has.
class GpuBackend {
 public:
  virtual ~GpuBackend() = default;

  // As DeviceRows::device.
  virtual const std::string& device() const = 0;

  // Most positions, slots, places or arrivals that a call takes.
  virtual size_t max_batch() const = 0;

  // slots: as positions (distinct); holds guesses, any numbers, and answers with the slot of each
  // position, or kNoGpuSlot. Rows that were found are used as `use` says; those whose guess was
  // right are not scored, and neither is an update after a read. Returns how many were scored.
  virtual absl::StatusOr<size_t> Find(std::span<const Position> positions, GpuUse use, uint16_t now,
                                      std::span<uint32_t> slots) = 0;

  // Gives a slot to each arrival, those of a bucket in their order, and copies dirty rows that
  // leave into the arrivals' places. placed: as arrivals. The bytes of the rows that come are not
  // set.
  virtual absl::Status Insert(std::span<const GpuArrival> arrivals, uint16_t now,
                              std::span<GpuPlaced> placed) = 0;

  // Sets rows' bytes: from the host's memory, or from staging places. REQUIRES of Put: nothing is
  // open.
  virtual absl::Status Put(std::span<const uint32_t> slots,
                           std::span<const uint8_t* const> rows) = 0;
  virtual absl::Status PutStaged(std::span<const uint32_t> slots,
                                 std::span<const uint32_t> places) = 0;

  // rows[i]: where the host finds the bytes of slots[i], or places[i], until the next call of Read,
  // or of ReadStaged, or until they change.
  virtual absl::Status Read(std::span<const uint32_t> slots, std::span<const uint8_t*> rows) = 0;
  virtual absl::Status ReadStaged(std::span<const uint32_t> places,
                                  std::span<const uint8_t*> rows) = 0;

  // rows[i]: where the host reads and, after GpuUse::kUpdate, writes slots[i] until Close. One Open
  // at a time.
  virtual absl::Status Open(std::span<const uint32_t> slots, GpuUse use,
                            std::span<uint8_t*> rows) = 0;
  // Ends the hold on `slots`, and brings what was written through Open to its place.
  virtual absl::Status Close(std::span<const uint32_t> slots) = 0;

  // out: (slots, EncodedRowBytes(codec, dim)): the first `dim` floats of each slot's row, encoded.
  // Of kNoGpuSlot any bytes. 4 dim <= row_bytes.
  virtual absl::Status Gather(std::span<const uint32_t> slots, ops::RowCodec codec, uint32_t dim,
                              uint8_t* out) = 0;
  // The same as float32, to memory of the device.
  virtual absl::Status GatherThere(std::span<const uint32_t> slots, uint32_t dim, float* out) = 0;
  // DeviceRows::Upload and Download. REQUIRES: 4 dim <= row_bytes; nothing is open.
  virtual absl::Status Upload(const float* rows, std::span<const uint32_t> numbers, uint32_t dim,
                              float* there) = 0;
  virtual absl::Status Download(const float* there, std::span<const uint32_t> numbers, uint32_t dim,
                                float* rows) = 0;
  // As DeviceRows::AllocateThere.
  virtual absl::StatusOr<float*> AllocateThere(size_t floats) = 0;
  // slots: as births.keys. Each becomes InitialRow of its key. REQUIRES: nothing is open.
  virtual absl::Status InitializeRows(std::span<const uint32_t> slots, const RowBirths& births) = 0;
  // As DeviceRows::InitializeThere.
  virtual absl::Status InitializeThere(const RowBirths& births, std::span<const uint32_t> numbers,
                                       float* there) = 0;
  // UpdateRows of the rows of `slots`, and TouchMeta of those that took their gradient; kNoGpuSlot
  // is passed over. outcomes: as slots. REQUIRES: nothing is open; as DeviceRows::Apply.
  virtual absl::Status Apply(std::span<const uint32_t> slots, const RowUpdate& update,
                             uint8_t* outcomes) = 0;

  // As RowTable::Pin and Unpin; slots may be any numbers. Pin ends at one that names no slot (but
  // for kNoGpuSlot, which it passes over), at a row with 255 pins, and where `most_rows` rows are
  // pinned for the first time.
  virtual absl::StatusOr<GpuPinned> Pin(std::span<const uint32_t> slots, size_t most_rows) = 0;
  // Returns how many rows lost their last pin.
  virtual absl::StatusOr<size_t> Unpin(std::span<const Position> positions,
                                       std::span<const uint32_t> slots) = 0;

  // flags[i] of slots[i] (0: kNoGpuSlot), and how many of them are pinned.
  virtual absl::StatusOr<size_t> Flags(std::span<const uint32_t> slots,
                                       std::span<uint8_t> flags) = 0;
  // They hold no row any more.
  virtual absl::Status Erase(std::span<const uint32_t> slots) = 0;
  // They are below as they are here: kGpuBelow and not kGpuDirty.
  virtual absl::Status MarkClean(std::span<const uint32_t> slots) = 0;

  // Ascending by position, at most `most`: the first dirty rows of [first, last].
  virtual absl::StatusOr<std::vector<GpuRow>> Dirty(Position first, Position last, size_t most) = 0;
  // Of full buckets `bucket` .. (modulo their number), at most kLeaveBuckets: dirty rows among the
  // sixteenth of each that leaves first, at most `most`. Moves `bucket` to the first one not looked
  // at.
  static constexpr uint32_t kLeaveBuckets = 4096;
  virtual absl::StatusOr<std::vector<GpuRow>> NextToLeave(uint32_t& bucket, size_t most) = 0;

  virtual absl::Status Age(GpuAging aging) = 0;
};

// RESOURCE_EXHAUSTED names requested and free bytes.
using GpuBackendFactory =
    std::function<absl::StatusOr<std::unique_ptr<GpuBackend>>(const GpuShape& shape)>;

}  // namespace strata::storage::gpu

#endif  // STRATA_STORAGE_GPU_BACKEND_H_

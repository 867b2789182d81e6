// The GPU table itself: see table.h.
// Tested by tests/storage/gpu/table_test.cc
#ifndef STRATA_STORAGE_GPU_ROWS_H_
#define STRATA_STORAGE_GPU_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ops/codec.h"
#include "proto/core/ids.h"
#include "storage/gpu/backend.h"
#include "storage/gpu/below.h"
#include "storage/gpu/clock.h"
#include "storage/gpu/shape.h"
#include "storage/gpu/write_back.h"
#include "storage/row/births.h"
#include "storage/row/device_rows.h"
#include "storage/row/table.h"
#include "storage/row/update.h"

namespace strata::storage::gpu {

class GpuTable final : public RowTable, public DeviceRows {
 public:
  GpuTable(Position first, Position last, const GpuShape& shape, std::unique_ptr<RowTable> below,
           std::unique_ptr<GpuBackend> backend);

  DeviceRows* device_rows() override { return this; }
  size_t max_batch() const override { return max_batch_; }
  void Expect(uint64_t rows) override { below_.table().Expect(rows); }
  absl::Status Resolve(std::span<const Position> positions, Access access, std::span<RowRef> refs,
                       std::span<RowSlot> slots) override;
  void Release() override;
  // rows_in_place.cc:
  absl::Status Locate(std::span<const Position> positions, Access access, std::span<RowRef> refs,
                      std::span<RowSlot> slots) override;
  absl::Status CopyRows(std::span<RowRef> refs) override;
  absl::Status Gather(ops::RowCodec codec, uint32_t dim, uint8_t* out) override;
  const std::string& device() const override { return backend_->device(); }
  absl::Status GatherThere(uint32_t dim, float* out) override;
  absl::Status Upload(const float* rows, std::span<const uint32_t> numbers, uint32_t dim,
                      float* there) override;
  absl::Status Download(const float* there, std::span<const uint32_t> numbers, uint32_t dim,
                        float* rows) override;
  absl::StatusOr<float*> AllocateThere(size_t floats) override;
  absl::Status InitializeRows(const RowBirths& births, std::span<const uint32_t> numbers) override;
  absl::Status InitializeThere(const RowBirths& births, std::span<const uint32_t> numbers,
                               float* there) override;
  absl::Status Apply(const RowUpdate& update, uint8_t* outcomes) override;
  size_t Pin(std::span<const RowSlot> slots) override;
  void Unpin(std::span<const Position> positions, std::span<const RowSlot> slots) override;
  absl::Status Erase(std::span<const Position> positions) override;
  absl::Status Scan(Position first, Position last, const Visitor& visit) override;
  absl::Status Flush() override;
  absl::StatusOr<size_t> Tidy(size_t rows) override;
  TableCounters counters() const override;

 private:
  // A missed position that is to come up.
  struct Miss {
    uint32_t index = 0;              // in the batch
    const uint8_t* bytes = nullptr;  // found below
    uint32_t place = kNoGpuSlot;     // found waiting
  };

  // What becomes of rows in HBM when they are held.
  enum class Leave : uint8_t {
    kOpen,   // the host reads and writes them
    kThere,  // only the device does
  };

  absl::Status Hold(std::span<const Position> positions, Access access, Leave leave,
                    std::span<RowRef> refs, std::span<RowSlot> slots);
  absl::Status BringUp(std::span<const Position> positions, Access access, std::span<RowRef> refs);
  absl::Status FindMisses(std::span<const Position> positions, Access access,
                          std::span<const uint32_t> indices);
  absl::Status InsertMisses(std::span<const Position> positions, Access access,
                            std::span<const uint32_t> places, std::span<RowRef> refs);
  absl::Status MoveUp();
  absl::Status ServeCrowded(std::span<const Position> positions, Access access,
                            std::span<RowRef> refs);
  absl::Status OpenRows(Access access, Leave leave, std::span<RowRef> refs);
  absl::Status Pass(size_t scored);
  void Undo();
  absl::Status WriteRows(std::span<const GpuRow> rows);
  absl::Status Device(absl::Status status);

  const Position first_, last_;
  const GpuShape shape_;
  const std::unique_ptr<GpuBackend> backend_;
  GpuBelow below_;
  GpuWriteBack write_back_;
  GpuClock clock_;
  const size_t max_batch_;
  const size_t most_misses_;  // that one read from below takes
  // Of the Resolve at hand. slots_: of positions; kNoGpuSlot: none, from shape_.slots() on: served
  // by the table below.
  std::vector<uint32_t> slots_;
  std::vector<Miss> misses_;
  std::vector<Position> asked_;  // of the table below
  std::vector<RowRef> below_refs_;
  std::vector<GpuArrival> arrivals_;  // as misses_
  std::vector<GpuPlaced> placed_;     // as misses_
  size_t arrived_ = 0;
  std::vector<uint32_t> crowded_;       // indices of rows for which no row may leave
  std::vector<uint8_t> copies_;         // of rows that wait, of which no slot has room
  std::vector<uint32_t> unset_;         // slots of rows that came without bytes: born, or replaced
  std::vector<uint32_t> held_;          // slots, until Release
  std::vector<uint32_t> in_place_;      // as positions: its slot in HBM, else kNoGpuSlot
  std::vector<uint32_t> born_slots_;    // of InitializeRows
  std::vector<const uint8_t*> copied_;  // of CopyRows
  absl::Status broken_;                 // what the device failed with
  uint64_t rows_ = 0;
  uint64_t pinned_ = 0;  // rows; <= slots / 2
  uint64_t hits_ = 0;
  uint64_t evicted_ = 0;
  uint64_t gathered_ = 0;
  uint64_t updated_ = 0;
  uint64_t extra_bytes_ = 0;  // of AllocateThere
  uint32_t tidy_bucket_ = 0;
};

}  // namespace strata::storage::gpu

#endif  // STRATA_STORAGE_GPU_ROWS_H_

// Rows of a table that lie in a device's memory (HBM), read and updated there: what a RowTable with
// such a tier offers beside Resolve, which copies rows to the host.
// Tested by tests/server/table/shard_table_device_test.cc
#ifndef STRATA_STORAGE_ROW_DEVICE_ROWS_H_
#define STRATA_STORAGE_ROW_DEVICE_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ops/codec.h"
#include "proto/core/ids.h"
#include "storage/row/births.h"
#include "storage/row/table.h"
#include "storage/row/update.h"

namespace strata::storage {

// Part of its table, and called as the table is. All but Locate are about the rows of the open
// Locate that are on the device, and pass over the others. What they answer does not depend on
// where rows lie. Errors of theirs are the device's, and end the table.
class DeviceRows {
 public:
  virtual ~DeviceRows() = default;

  // As RowTable::Resolve, and ended by its Release; but rows that are on the device stay there:
  // refs[i].on_device says so, and refs[i].row is null. Rows that the tier serves from below are on
  // the host as ever.
  virtual absl::Status Locate(std::span<const Position> positions, Access access,
                              std::span<RowRef> refs, std::span<RowSlot> slots) = 0;

  // refs: of Locate. Where on_device, row becomes a copy, to be read until the next call.
  virtual absl::Status CopyRows(std::span<RowRef> refs) = 0;

  // out: (positions, EncodedRowBytes(codec, dim)): the first `dim` floats of each row, encoded. The
  // places of rows that are not on the device get any bytes.
  virtual absl::Status Gather(ops::RowCodec codec, uint32_t dim, uint8_t* out) = 0;

  // The device's UUID (ops::gpu::DeviceProperties); "host": threads stand for one.
  virtual const std::string& device() const = 0;

  // As Gather of float32, with `out` in the device's memory.
  virtual absl::Status GatherThere(uint32_t dim, float* out) = 0;
  // Copies rows of `dim` floats between the host's memory, where they lie one behind the other, and
  // the device's, where row k is number numbers[k]: the rows of a batch that are not on the device.
  // Numbers are distinct, at most max_batch.
  virtual absl::Status Upload(const float* rows, std::span<const uint32_t> numbers, uint32_t dim,
                              float* there) = 0;
  virtual absl::Status Download(const float* there, std::span<const uint32_t> numbers, uint32_t dim,
                                float* rows) = 0;

  // Memory of the device for `floats` > 0 floats, beyond the table's own and its limit, at a
  // multiple of 16 bytes; its contents are unspecified, and it goes with the table. At most half of
  // what the device has free: beyond that RESOURCE_EXHAUSTED, which ends nothing.
  virtual absl::StatusOr<float*> AllocateThere(size_t floats) = 0;

  // Row number numbers[k] of the positions becomes InitialRow of births.keys[k], all of its bytes.
  // REQUIRES: it is on the device; numbers are distinct.
  virtual absl::Status InitializeRows(const RowBirths& births,
                                      std::span<const uint32_t> numbers) = 0;
  // InitialWeights of births.keys[k] to row numbers[k] of `there`, (rows, layout.dim): as Upload.
  virtual absl::Status InitializeThere(const RowBirths& births, std::span<const uint32_t> numbers,
                                       float* there) = 0;

  // As UpdateRows, with sums by position (on the host, or in the device's memory: RowUpdate), and
  // TouchMeta of every row that took its gradient. outcomes: as positions; 0 where the row is not
  // on the device. REQUIRES: Locate was for Access::kUpdate; at most kMostDeviceRuns runs; layout
  // of the table's rows, not scored.
  virtual absl::Status Apply(const RowUpdate& update, uint8_t* outcomes) = 0;
};

}  // namespace strata::storage

#endif  // STRATA_STORAGE_ROW_DEVICE_ROWS_H_

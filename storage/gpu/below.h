// The table below a GPU table, and what the GPU table knows that it lacks.
// Tested by tests/storage/gpu/table_test.cc
#ifndef STRATA_STORAGE_GPU_BELOW_H_
#define STRATA_STORAGE_GPU_BELOW_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "proto/core/ids.h"
#include "storage/row/table.h"

namespace strata::storage::gpu {

// Not thread-safe. One call of Read or Serve is open at a time, until Release.
class GpuBelow {
 public:
  // Rows of one call of Store's own calls, at most.
  static constexpr size_t kStoreRows = size_t{1} << 16;

  // A row to be written: where it is on the host, and whether the table below has a version of it.
  struct Row {
    Position position;
    const uint8_t* bytes = nullptr;
    bool known = false;
    uint32_t tag = 0;  // the caller's
  };

  GpuBelow(std::unique_ptr<RowTable> table, size_t row_bytes)
      : table_(std::move(table)), row_bytes_(row_bytes) {}

  RowTable& table() { return *table_; }

  // Finds the rows of positions; refs[i].row is null where there is none.
  absl::Status Read(std::span<const Position> positions, std::span<RowRef> refs) {
    return Open(positions, Access::kRead, refs);
  }
  // The same for a caller who asks for `access`, after a Read of them: not counted again.
  absl::Status Serve(std::span<const Position> positions, Access access, std::span<RowRef> refs);
  // Ends what is open, if anything is.
  void Release();

  // Writes rows in batches, those that are known first: `done` goes from 0 to how many were
  // written, of rows as they are ordered now, each kind ascending by position. After an error the
  // others are as they were. Not counted as references. REQUIRES: positions are distinct; nothing
  // is open.
  absl::Status Store(std::vector<Row>& rows, size_t& done);

  // Rows that exist above and that this table has no version of.
  void AddLacking(uint64_t rows) { lacking_ += rows; }
  void RemoveLacking(uint64_t rows) { lacking_ -= rows; }

  // Of the table below, with rows it lacks among `rows`, without what Serve and Store caused, and
  // with what Store wrote as hbm_written_back.
  TableCounters counters() const;

 private:
  absl::Status Open(std::span<const Position> positions, Access access, std::span<RowRef> refs);
  // Takes what was counted since out of the references.
  void Discount(const TableCounters& since);

  const std::unique_ptr<RowTable> table_;
  const size_t row_bytes_;
  bool open_ = false;
  uint64_t lacking_ = 0;
  uint64_t stored_ = 0;
  TableCounters discount_;
  std::vector<Position> positions_;  // of Store
  std::vector<RowRef> refs_;
};

}  // namespace strata::storage::gpu

#endif  // STRATA_STORAGE_GPU_BELOW_H_

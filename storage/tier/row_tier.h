// The interface of what lies below the DRAM tier: rows of all tables of one job on one server, on
// SSD.
// Tested by tests/storage/rocks/tier_test.cc
// Tested by tests/storage/row_file/tier_test.cc
#ifndef STRATA_STORAGE_TIER_ROW_TIER_H_
#define STRATA_STORAGE_TIER_ROW_TIER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "proto/core/ids.h"

namespace strata::storage {

enum class OpenMode : uint8_t {
  kFresh,  // removes the rows that the folder may hold; what recovery wants
  kKeep,   // keeps the rows that were there at the last Sync
};

// Since the tier was opened; zeros of a tier that does not count.
struct TierStats {
  uint64_t asked_bytes = 0;    // of rows given to Write
  uint64_t written_bytes = 0;  // written to files, merges and compactions included
  uint64_t read_bytes = 0;     // read from files by Read and cursors
  uint64_t rows_asked = 0;     // positions given to Read
  uint64_t live_bytes = 0;     // of rows that exist now, about
  uint64_t file_bytes = 0;     // of the files now
  uint64_t memory_bytes = 0;   // of indexes and filters now

  double WriteAmplification() const {
    return asked_bytes == 0 ? 0 : static_cast<double>(written_bytes) / asked_bytes;
  }
  double SpaceAmplification() const {
    return live_bytes == 0 ? 0 : static_cast<double>(file_bytes) / live_bytes;
  }
  double ReadBytesPerRow() const {
    return rows_asked == 0 ? 0 : static_cast<double>(read_bytes) / rows_asked;
  }
};

// Rows of one table of the tier in order of position, as they were when it was made.
class TierCursor {
 public:
  virtual ~TierCursor() = default;
  // False at the end and on an error.
  virtual bool Valid() const = 0;
  virtual Position position() const = 0;
  // Valid until Next.
  virtual std::span<const uint8_t> row() const = 0;
  virtual void Next() = 0;
  // OK at a regular end.
  virtual absl::Status status() const = 0;
};

// Thread-safe; shared by the shards of a job. Errors name the folder and what to do:
// RESOURCE_EXHAUSTED (disk, file handles or memory), DATA_LOSS (a file is damaged), UNAVAILABLE
// (the disk failed to answer; try again).
class RowTier {
 public:
  virtual ~RowTier() = default;

  // Batched read of `positions` (strictly ascending): calls found(i, row) for each position i that
  // has a row, ascending by i; nothing for the others. At most ReadRowsAtOnce rows are held in
  // memory at a time. DATA_LOSS if a row is not of row_bytes. `found` must not call the tier.
  using Found = std::function<void(size_t i, const uint8_t* row)>;
  virtual absl::Status Read(TableId table, std::span<const Position> positions, size_t row_bytes,
                            const Found& found) = 0;
  // 256 KiB of rows, 16 .. 1024 of them.
  static constexpr size_t ReadRowsAtOnce(size_t row_bytes) {
    return std::clamp<size_t>((size_t{256} << 10) / row_bytes, 16, 1024);
  }

  // Writes rows[i] (row_bytes each) at positions[i] (strictly ascending), all or nothing per
  // kWriteChunkBytes of rows: after an error, rows may have been written or not; the same call may
  // be repeated.
  static constexpr size_t kWriteChunkBytes = size_t{4} << 20;
  virtual absl::Status Write(TableId table, std::span<const Position> positions,
                             std::span<const uint8_t* const> rows, size_t row_bytes) = 0;

  // Removes the rows that exist.
  virtual absl::Status Delete(TableId table, std::span<const Position> positions) = 0;

  // Rows with first <= position <= last. The cursor must not outlive the tier.
  virtual std::unique_ptr<TierCursor> NewCursor(TableId table, Position first, Position last,
                                                size_t row_bytes) = 0;

  // Removes every row of every table in whole partitions first .. last.
  virtual absl::Status DeletePartitions(PartitionId first, PartitionId last) = 0;

  // Brings everything written so far into files (fsynced): a later open with OpenMode::kKeep finds
  // it. Writes alone do not: there is no write-ahead log, since recovery does not trust this tier.
  virtual absl::Status Sync() = 0;

  virtual TierStats stats() const { return {}; }
};

}  // namespace strata::storage

#endif  // STRATA_STORAGE_TIER_ROW_TIER_H_

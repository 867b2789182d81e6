// Extents of a row file: sorted runs of rows, immutable, with their index in memory.
#ifndef STRATA_STORAGE_ROW_FILE_EXTENT_H_
#define STRATA_STORAGE_ROW_FILE_EXTENT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/core/ids.h"
#include "storage/row_file/block.h"
#include "storage/row_file/volume.h"

namespace strata::storage::row_file {

// The rows of one table in an extent. Memory: blocks * (8 + filter_bytes).
struct Section {
  TableId table;
  BlockShape shape;
  uint32_t filter_bits = 0;      // per row
  uint32_t first_block = 0;      // number within the extent
  uint64_t offset = 0;           // of the first block, within the extent
  uint64_t rows = 0;             // deleted ones too
  std::vector<uint64_t> fences;  // first position of each block
  std::vector<uint8_t> filters;  // FilterBytes(shape.rows, filter_bits) a block

  uint32_t filter_bytes() const { return FilterBytes(shape.rows, filter_bits); }
  std::span<const uint8_t> filter(size_t block) const {
    return {filters.data() + block * filter_bytes(), filter_bytes()};
  }
  uint64_t end() const { return offset + fences.size() * uint64_t{shape.block_bytes}; }
};

// Where an extent lies: what the manifest keeps of it.
struct ExtentPlace {
  uint64_t number = 0;  // unique in the tier's life
  uint32_t level = 0;   // how many times its rows were merged (version.h)
  std::vector<ChunkRun> runs;
  uint64_t index_offset = 0;
  uint64_t index_bytes = 0;
};

// The pieces of the file that hold bytes of an extent: (offset in the file, bytes).
using Piece = std::pair<uint64_t, uint64_t>;
void PiecesOf(const std::vector<ChunkRun>& runs, uint64_t offset, uint64_t bytes,
              std::vector<Piece>& out);

// Immutable; shared by the versions that have it. Its chunks are retired with it.
class Extent {
 public:
  Extent(Volume* volume, ExtentPlace place, std::vector<Section> sections);
  ~Extent();
  Extent(const Extent&) = delete;
  Extent& operator=(const Extent&) = delete;

  // Reads the index. DATA_LOSS.
  static absl::StatusOr<std::shared_ptr<const Extent>> Load(Volume* volume, ExtentPlace place);

  const ExtentPlace& place() const { return place_; }
  const std::vector<Section>& sections() const { return sections_; }
  Volume* volume() const { return volume_; }
  uint64_t rows() const;
  uint64_t bytes() const { return place_.index_offset + place_.index_bytes; }
  uint64_t memory_bytes() const;

  // Null if it has no rows of the table.
  const Section* Find(TableId table) const;
  // The block that may hold the row.
  static std::optional<uint32_t> Find(const Section& section, Position position);

  absl::Status Read(uint64_t offset, std::span<uint8_t> out) const;
  // DATA_LOSS that names the file and the place in it.
  absl::Status Damaged(uint64_t offset, absl::string_view what) const;

 private:
  Volume* const volume_;
  const ExtentPlace place_;
  const std::vector<Section> sections_;
};

// Writes one extent in pieces of 256 KiB. Its chunks are given back if it is not finished.
class ExtentWriter {
 public:
  ExtentWriter(Volume* volume, uint64_t number, uint32_t level, uint32_t filter_bits);
  ~ExtentWriter();

  // Ascending. `row` null: deleted.
  absl::Status Add(RowKey key, uint32_t row_bytes, const uint8_t* row);
  uint64_t rows() const { return rows_; }
  absl::StatusOr<std::shared_ptr<const Extent>> Finish();

 private:
  void EndBlock();
  absl::Status Flush();
  absl::Status Put(std::span<const uint8_t> bytes);

  Volume* const volume_;
  ExtentPlace place_;
  const uint32_t filter_bits_;
  uint64_t capacity_ = 0;  // bytes of place_.runs
  uint64_t written_ = 0;
  uint64_t rows_ = 0;
  PageMemory buffer_;
  size_t buffered_ = 0;
  std::optional<BlockBuilder> block_;
  uint32_t blocks_ = 0;
  std::vector<Section> sections_;
  bool finished_ = false;
};

}  // namespace strata::storage::row_file

#endif  // STRATA_STORAGE_ROW_FILE_EXTENT_H_

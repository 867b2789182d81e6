// Blocks of rows, the unit of a row file's reads (FORMAT.md).
#ifndef STRATA_STORAGE_ROW_FILE_BLOCK_H_
#define STRATA_STORAGE_ROW_FILE_BLOCK_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "proto/core/ids.h"

namespace strata::storage::row_file {

// The order of everything in a row file. A partition is one range of positions in each table.
struct RowKey {
  TableId table;
  Position position;
  friend constexpr auto operator<=>(const RowKey&, const RowKey&) = default;
};

inline constexpr uint32_t kMostRowBytes = 192u << 10;

// How rows of one size lie in blocks: crc u32 | rows u16 | zero u16 | a bit per row that says
// "deleted" | positions | rows. The CRC covers the extent's number, the block's and the bytes after
// it, so a block that lies in the wrong place is found too.
struct BlockShape {
  uint32_t row_bytes = 0;
  uint32_t block_bytes = 0;  // whole pages: the fewest of which four fifths are rows
  uint32_t rows = 0;         // of a full block

  static BlockShape For(uint32_t row_bytes);

  static constexpr uint32_t kHeaderBytes = 8;
  uint32_t PositionsAt() const { return kHeaderBytes + (rows + 7) / 8; }
  uint32_t RowsAt() const { return PositionsAt() + rows * 8; }
  static constexpr uint64_t Bytes(uint64_t rows, uint64_t row_bytes) {
    return kHeaderBytes + (rows + 7) / 8 + rows * (8 + row_bytes);
  }
};

// Writes one block. REQUIRES: block_bytes of memory, zeroed; at most shape.rows rows.
class BlockBuilder {
 public:
  BlockBuilder(const BlockShape& shape, uint8_t* out) : shape_(shape), out_(out) {}
  // `row` may be null: the row is deleted.
  void Add(Position position, const uint8_t* row);
  uint32_t rows() const { return rows_; }
  bool full() const { return rows_ == shape_.rows; }
  void Finish(uint64_t extent, uint32_t block);

 private:
  BlockShape shape_;
  uint8_t* out_;
  uint32_t rows_ = 0;
};

class BlockView {
 public:
  // Nothing if the block does not check.
  static std::optional<BlockView> Check(const BlockShape& shape, std::span<const uint8_t> bytes,
                                        uint64_t extent, uint32_t block);

  uint32_t rows() const { return rows_; }
  Position position(uint32_t i) const;
  // Null if it is deleted.
  const uint8_t* row(uint32_t i) const;
  // Index of the first row at or after the position; rows() if there is none.
  uint32_t LowerBound(Position position) const;

 private:
  BlockShape shape_;
  const uint8_t* bytes_ = nullptr;
  uint32_t rows_ = 0;
};

// A Bloom filter per block: a lookup touches one or two cache lines. False positives at 8, 10, 14
// bits a row: about 2.2, .9, .12 % (ideal Bloom filter; each block's load is exact).
uint32_t FilterBytes(uint32_t rows, uint32_t bits_per_row);
void FilterAdd(std::span<uint8_t> filter, uint32_t bits_per_row, Position position);
bool FilterMayHave(std::span<const uint8_t> filter, uint32_t bits_per_row, Position position);

}  // namespace strata::storage::row_file

#endif  // STRATA_STORAGE_ROW_FILE_BLOCK_H_

#include "storage/row_file/block.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "proto/core/checksum.h"
#include "storage/io/byte_codec.h"

namespace strata::storage::row_file {
namespace {

constexpr uint32_t kPage = 4096;
constexpr uint32_t kMostPages = 16;

uint32_t Checksum(std::span<const uint8_t> block, uint64_t extent, uint32_t number) {
  std::array<uint8_t, 12> place;
  FieldWriter out(place.data());
  out.U64(extent);
  out.U32(number);
  return Crc32cExtend(Crc32c(place), block.subspan(4));
}

uint64_t Hash(Position position) {
  uint64_t x = position.value * 0x9e3779b97f4a7c15ull;
  return x ^ (x >> 32);
}

// k = bits * ln 2, at most 12.
uint32_t Probes(uint32_t bits_per_row) {
  return std::clamp<uint32_t>(bits_per_row * 69 / 100, 1, 12);
}

template <typename Visit>
bool ForProbes(size_t bytes, uint32_t bits_per_row, Position position, const Visit& visit) {
  const uint64_t hash = Hash(position);
  const auto bits = static_cast<uint32_t>(bytes * 8);
  auto h = static_cast<uint32_t>(hash);
  const uint32_t step = static_cast<uint32_t>(hash >> 32) | 1;
  for (uint32_t i = Probes(bits_per_row); i > 0; --i, h += step) {
    const auto bit = static_cast<uint32_t>((uint64_t{h} * bits) >> 32);
    if (!visit(bit)) return false;
  }
  return true;
}

}  // namespace

BlockShape BlockShape::For(uint32_t row_bytes) {
  BlockShape best;
  for (uint32_t pages = 1; pages <= kMostPages || best.rows == 0; ++pages) {
    const uint32_t bytes = pages * kPage;
    uint32_t rows = std::min<uint32_t>(65535, bytes / (8 + row_bytes));
    while (rows > 0 && Bytes(rows, row_bytes) > bytes) --rows;
    if (rows == 0) continue;
    const auto fill = [row_bytes](uint32_t n, uint32_t of) {
      return static_cast<double>(n) * row_bytes / of;
    };
    if (best.rows == 0 || fill(rows, bytes) > fill(best.rows, best.block_bytes)) {
      best = {.row_bytes = row_bytes, .block_bytes = bytes, .rows = rows};
    }
    // Positions of 8 bytes are not waste.
    if (static_cast<double>(Bytes(rows, row_bytes)) >= 0.8 * bytes) break;
  }
  return best;
}

void BlockBuilder::Add(Position position, const uint8_t* row) {
  std::memcpy(out_ + shape_.PositionsAt() + rows_ * 8, &position.value, 8);
  if (row != nullptr) {
    std::memcpy(out_ + shape_.RowsAt() + size_t{rows_} * shape_.row_bytes, row, shape_.row_bytes);
  } else {
    out_[BlockShape::kHeaderBytes + rows_ / 8] |= static_cast<uint8_t>(1u << (rows_ % 8));
  }
  ++rows_;
}

void BlockBuilder::Finish(uint64_t extent, uint32_t block) {
  FieldWriter(out_ + 4).U16(static_cast<uint16_t>(rows_));
  FieldWriter(out_).U32(Checksum({out_, shape_.block_bytes}, extent, block));
}

std::optional<BlockView> BlockView::Check(const BlockShape& shape, std::span<const uint8_t> bytes,
                                          uint64_t extent, uint32_t block) {
  FieldReader in(bytes.data());
  const uint32_t crc = in.U32();
  BlockView view;
  view.shape_ = shape;
  view.bytes_ = bytes.data();
  view.rows_ = in.U16();
  if (crc != Checksum(bytes, extent, block) || view.rows_ > shape.rows) return std::nullopt;
  return view;
}

Position BlockView::position(uint32_t i) const {
  uint64_t value;
  std::memcpy(&value, bytes_ + shape_.PositionsAt() + i * 8, 8);
  return Position(value);
}

const uint8_t* BlockView::row(uint32_t i) const {
  const bool deleted = (bytes_[BlockShape::kHeaderBytes + i / 8] >> (i % 8) & 1) != 0;
  return deleted ? nullptr : bytes_ + shape_.RowsAt() + size_t{i} * shape_.row_bytes;
}

uint32_t BlockView::LowerBound(Position wanted) const {
  uint32_t first = 0;
  for (uint32_t n = rows_; n > 0;) {
    const uint32_t half = n / 2;
    if (position(first + half) < wanted) {
      first += half + 1;
      n -= half + 1;
    } else {
      n = half;
    }
  }
  return first;
}

uint32_t FilterBytes(uint32_t rows, uint32_t bits_per_row) { return (rows * bits_per_row + 7) / 8; }

void FilterAdd(std::span<uint8_t> filter, uint32_t bits_per_row, Position position) {
  ForProbes(filter.size(), bits_per_row, position, [&](uint32_t bit) {
    filter[bit / 8] |= static_cast<uint8_t>(1u << (bit % 8));
    return true;
  });
}

bool FilterMayHave(std::span<const uint8_t> filter, uint32_t bits_per_row, Position position) {
  return ForProbes(filter.size(), bits_per_row, position,
                   [&](uint32_t bit) { return (filter[bit / 8] >> (bit % 8) & 1) != 0; });
}

}  // namespace strata::storage::row_file

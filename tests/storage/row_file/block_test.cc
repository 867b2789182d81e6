#include "storage/row_file/block.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <vector>

namespace strata::storage::row_file {
namespace {

TEST_CASE("blocks are as full as stated", "[storage][row_file]") {
  CHECK(BlockShape::For(128).block_bytes == 4096);
  CHECK(BlockShape::For(128).rows == 30);
  for (uint32_t row_bytes = 4; row_bytes <= 60'000; row_bytes += 4) {
    const BlockShape shape = BlockShape::For(row_bytes);
    REQUIRE(shape.rows > 0);
    REQUIRE(shape.block_bytes % 4096 == 0);
    REQUIRE(shape.RowsAt() + uint64_t{shape.rows} * row_bytes <= shape.block_bytes);
    REQUIRE(BlockShape::Bytes(shape.rows, row_bytes) >= 0.78 * shape.block_bytes);
  }
}

TEST_CASE("a block gives back its rows, and every flipped bit is found", "[storage][row_file]") {
  const BlockShape shape = BlockShape::For(12);
  std::vector<uint8_t> bytes(shape.block_bytes);
  BlockBuilder builder(shape, bytes.data());
  std::mt19937_64 random(3);
  std::vector<std::vector<uint8_t>> rows;
  for (uint64_t i = 0; i < 100; ++i) {
    rows.emplace_back(12, static_cast<uint8_t>(random()));
    builder.Add(Position(i * 10), i % 7 == 0 ? nullptr : rows[i].data());
  }
  builder.Finish(5, 9);
  const auto view = BlockView::Check(shape, bytes, 5, 9);
  REQUIRE(view);
  REQUIRE(view->rows() == 100);
  for (uint32_t i = 0; i < 100; ++i) {
    CHECK(view->position(i) == Position(i * 10));
    CHECK((view->row(i) == nullptr) == (i % 7 == 0));
    if (view->row(i) != nullptr) CHECK(std::equal(rows[i].begin(), rows[i].end(), view->row(i)));
    CHECK(view->LowerBound(Position(i * 10)) == i);
    CHECK(view->LowerBound(Position(i * 10 + 1)) == i + 1);
  }
  CHECK_FALSE(BlockView::Check(shape, bytes, 6, 9));  // another extent's place
  CHECK_FALSE(BlockView::Check(shape, bytes, 5, 8));
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
    REQUIRE_FALSE(BlockView::Check(shape, bytes, 5, 9));
    bytes[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
  }
}

TEST_CASE("filters know what was added, and little else", "[storage][row_file]") {
  std::mt19937_64 random(5);
  struct Case {
    uint32_t bits;
    double most;  // of absent positions that pass
  };
  for (const Case c : {Case{1, 0.7}, Case{8, 0.03}, Case{14, 0.003}, Case{16, 0.002}}) {
    size_t passed = 0;
    constexpr size_t kBlocks = 2000, kRows = 30, kAbsent = 50;
    for (size_t b = 0; b < kBlocks; ++b) {
      std::vector<uint8_t> filter(FilterBytes(kRows, c.bits));
      std::vector<Position> rows;
      // The upper bits of a block's positions are alike.
      for (size_t i = 0; i < kRows; ++i) rows.push_back(Position(b << 40 | random() >> 24));
      for (Position p : rows) FilterAdd(filter, c.bits, p);
      for (Position p : rows) REQUIRE(FilterMayHave(filter, c.bits, p));
      for (size_t i = 0; i < kAbsent; ++i) {
        passed += FilterMayHave(filter, c.bits, Position(b << 40 | random() >> 24)) ? 1 : 0;
      }
    }
    CHECK(static_cast<double>(passed) < c.most * kBlocks * kAbsent);
  }
}

}  // namespace
}  // namespace strata::storage::row_file

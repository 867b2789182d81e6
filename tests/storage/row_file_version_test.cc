#include "storage/row_file_version.h"

#include <catch2/catch.hpp>
#include <vector>

namespace strata::storage::row_file {
namespace {

Manifest Example() {
  Manifest out{.next_number = 77, .partitions = 16, .ranges = {}};
  out.ranges.push_back({.begin = {TableId(0), Position(0)},
                        .deltas = {{.number = 1,
                                    .level = 2,
                                    .runs = {{3, 4}, {9, 1}},
                                    .index_offset = 4096,
                                    .index_bytes = 100}},
                        .base = {}});
  out.ranges.push_back(
      {.begin = {TableId(2), Position(~uint64_t{0})},
       .deltas = {},
       .base = ExtentPlace{
           .number = 5, .level = 0, .runs = {{20, 2}}, .index_offset = 0, .index_bytes = 8}});
  return out;
}

TEST_CASE("a manifest comes back, and no damaged one does", "[storage][row_file]") {
  std::vector<uint8_t> bytes = EncodeManifest(Example());
  const auto back = DecodeManifest(bytes);
  REQUIRE(back);
  CHECK(EncodeManifest(*back) == bytes);
  CHECK(back->ranges[0].deltas[0].runs[1].first == 9);
  CHECK(back->ranges[1].base->number == 5);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
    CHECK_FALSE(DecodeManifest(bytes));
    bytes[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
  }
  for (size_t n = 0; n < bytes.size(); ++n) {
    CHECK_FALSE(DecodeManifest(std::span(bytes).subspan(0, n)));
  }
}

TEST_CASE("a manifest whose index lies outside of its chunks is none", "[storage][row_file]") {
  Manifest wrong = Example();
  wrong.ranges[0].deltas[0].index_bytes = 5 * kChunkBytes - 4096 + 1;
  CHECK_FALSE(DecodeManifest(EncodeManifest(wrong)));
  wrong.ranges[0].deltas[0].index_bytes -= 1;
  CHECK(DecodeManifest(EncodeManifest(wrong)));
}

TEST_CASE("a key lies in the last range that begins at or before it", "[storage][row_file]") {
  Version version;
  version.ranges.push_back({.begin = {TableId(1), Position(10)}, .base = nullptr, .deltas = {}});
  version.ranges.push_back({.begin = {TableId(2), Position(0)}, .base = nullptr, .deltas = {}});
  CHECK(version.RangeOf({TableId(0), Position(~uint64_t{0})}) == 0);
  CHECK(version.RangeOf({TableId(1), Position(9)}) == 0);
  CHECK(version.RangeOf({TableId(1), Position(10)}) == 1);
  CHECK(version.RangeOf({TableId(7), Position(0)}) == 2);
  CHECK(version.LastOf(0) == RowKey{TableId(1), Position(9)});
  CHECK(version.LastOf(1) == RowKey{TableId(1), Position(~uint64_t{0})});
  CHECK(version.LastOf(2) == RowKey{TableId(~uint32_t{0}), Position(~uint64_t{0})});
}

}  // namespace
}  // namespace strata::storage::row_file

#include "storage/row_file/extent.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "storage/row_file/block.h"
#include "storage/row_file/volume.h"
#include "tests/temp_folder.h"

namespace strata::storage::row_file {
namespace {

using Row = std::optional<std::vector<uint8_t>>;  // nothing: deleted
using Rows = std::map<RowKey, Row>;

struct Bench {
  Bench() : volume(Volume::Open(path).value()) {}
  TempFolder folder;
  const std::string path = folder.path() + "/ROWS";
  std::unique_ptr<Volume> volume;
};

void AddRows(Rows& rows, uint32_t table, uint32_t row_bytes, size_t n, std::mt19937_64& random) {
  for (size_t i = 0; i < n; ++i) {
    std::vector<uint8_t> row(row_bytes);
    for (uint8_t& b : row) b = static_cast<uint8_t>(random());
    const bool deleted = random() % 5 == 0;
    rows[{TableId(table), Position(random())}] = deleted ? Row() : Row(std::move(row));
  }
}

// row_bytes: by table; a deleted row has them too.
std::shared_ptr<const Extent> Write(Volume* volume, uint64_t number, uint32_t filter_bits,
                                    const Rows& rows, std::map<TableId, uint32_t> row_bytes) {
  ExtentWriter writer(volume, number, 0, filter_bits);
  for (const auto& [key, row] : rows) {
    REQUIRE(writer.Add(key, row_bytes[key.table], row ? row->data() : nullptr).ok());
  }
  auto extent = writer.Finish();
  REQUIRE(extent.ok());
  return *std::move(extent);
}

// What the extent says of a key: the row, that it is deleted, or (`known` false) nothing.
Row Look(const Extent& extent, RowKey key, bool& known) {
  known = false;
  const Section* section = extent.Find(key.table);
  if (section == nullptr) return {};
  const auto number = Extent::Find(*section, key.position);
  if (!number) return {};
  const BlockShape& shape = section->shape;
  const PageMemory bytes = AllocatePages(shape.block_bytes);
  const std::span<uint8_t> all(bytes.get(), shape.block_bytes);
  REQUIRE(extent.Read(section->offset + *number * uint64_t{shape.block_bytes}, all).ok());
  const auto block =
      BlockView::Check(shape, all, extent.place().number, section->first_block + *number);
  REQUIRE(block);
  const uint32_t i = block->LowerBound(key.position);
  if (i == block->rows() || block->position(i) != key.position) return {};
  known = true;
  const uint8_t* row = block->row(i);
  return row == nullptr ? Row() : Row(std::vector<uint8_t>(row, row + shape.row_bytes));
}

void CheckHolds(const Extent& extent, const Rows& rows, std::mt19937_64& random) {
  REQUIRE(extent.rows() == rows.size());
  for (const auto& [key, row] : rows) {
    bool known = false;
    REQUIRE(Look(extent, key, known) == row);
    REQUIRE(known);
    bool other = false;
    Look(extent, {key.table, Position(random())}, other);
    REQUIRE_FALSE(other);
  }
}

TEST_CASE("an extent gives back its rows, also when it is loaded", "[storage][row_file]") {
  Bench bench;
  std::mt19937_64 random(31);
  Rows rows;
  AddRows(rows, 0, 12, 3000, random);
  AddRows(rows, 5, 100, 1, random);
  AddRows(rows, ~0u, 9000, 40, random);
  for (const uint64_t p : {uint64_t{0}, ~uint64_t{0}}) {
    rows[{TableId(0), Position(p)}] = std::vector<uint8_t>(12, 7);
    rows[{TableId(~0u), Position(p)}] = std::vector<uint8_t>(9000, 9);
  }
  // In chunks here and there.
  const std::vector<ChunkRun> all = bench.volume->Allocate(100).value();
  for (uint32_t c = 0; c < 100; c += 3) bench.volume->Free({{c, 1}});
  auto extent = Write(bench.volume.get(), 4, 10, rows,
                      {{TableId(0), 12}, {TableId(5), 100}, {TableId(~0u), 9000}});
  REQUIRE(extent->place().runs.size() > 10);
  CheckHolds(*extent, rows, random);
  CHECK(extent->Find(TableId(4)) == nullptr);
  auto loaded = Extent::Load(bench.volume.get(), extent->place());
  INFO(loaded.status());
  REQUIRE(loaded.ok());
  CheckHolds(**loaded, rows, random);
}

TEST_CASE("an index larger than the writer's buffer comes back", "[storage][row_file]") {
  Bench bench;
  std::mt19937_64 random(37);
  Rows rows;
  AddRows(rows, 1, 4, 150'000, random);
  auto extent = Write(bench.volume.get(), 4, 16, rows, {{TableId(1), 4}});
  REQUIRE(extent->place().index_bytes > (280u << 10));
  auto loaded = Extent::Load(bench.volume.get(), extent->place());
  REQUIRE(loaded.ok());
  const Section& section = extent->sections()[0];
  CHECK((*loaded)->sections()[0].fences == section.fences);
  CHECK((*loaded)->sections()[0].filters == section.filters);
  CHECK((*loaded)->rows() == rows.size());
}

TEST_CASE("no bit of an extent's index can flip unseen", "[storage][row_file]") {
  Bench bench;
  std::mt19937_64 random(41);
  Rows rows;
  AddRows(rows, 1, 100, 300, random);
  auto extent = Write(bench.volume.get(), 9, 14, rows, {{TableId(1), 100}});
  std::vector<Piece> pieces;
  PiecesOf(extent->place().runs, extent->place().index_offset, extent->place().index_bytes, pieces);
  REQUIRE(pieces.size() == 1);
  std::fstream file(bench.path, std::ios::in | std::ios::out | std::ios::binary);
  for (uint64_t at = pieces[0].first; at < pieces[0].first + pieces[0].second; ++at) {
    const auto flip = [&, bit = static_cast<char>(1 << at % 8)] {
      file.seekg(static_cast<std::streamoff>(at));
      const auto byte = static_cast<char>(file.get() ^ bit);
      file.seekp(static_cast<std::streamoff>(at));
      file.put(byte);
      file.flush();
      REQUIRE(file.good());
    };
    flip();
    const absl::Status s = Extent::Load(bench.volume.get(), extent->place()).status();
    REQUIRE(absl::IsDataLoss(s));
    REQUIRE(std::string(s.message()).find(bench.path + ", offset ") == 0);
    flip();
  }
  CHECK(Extent::Load(bench.volume.get(), extent->place()).ok());
}

TEST_CASE("an extent that is not finished gives its chunks back", "[storage][row_file]") {
  Bench bench;
  const std::vector<uint8_t> row(3000, 1);
  {
    ExtentWriter writer(bench.volume.get(), 1, 0, 8);
    for (uint64_t i = 0; i < 500; ++i) {
      REQUIRE(writer.Add({TableId(0), Position(i)}, 3000, row.data()).ok());
    }
  }
  CHECK(bench.volume->Allocate(1).value()[0].first == 0);
  CHECK(bench.volume->TakeRetired().empty());
}

}  // namespace
}  // namespace strata::storage::row_file

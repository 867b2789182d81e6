#include "storage/delta/file.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "proto/core/position.h"
#include "tests/seed.h"
#include "tests/storage/delta/oracle.h"
#include "tests/temp_folder.h"

namespace strata::storage {
namespace {

DeltaHeader Header(bool with_state) {
  DeltaHeader header;
  header.with_state = with_state;
  header.from = {10, {1, 2}};
  header.to = {20, {3, 4}};
  header.tables = {{TableId(0), TableKind::kHashed, 3, 2}, {TableId(4), TableKind::kDense, 1, 0}};
  return header;
}

struct Change {
  bool erased = false;
  std::vector<uint8_t> row;
  friend bool operator==(const Change&, const Change&) = default;
};
using Changes = std::map<uint32_t, std::map<Position, Change>>;  // by table

Changes RandomChanges(const DeltaHeader& header, uint64_t seed, size_t rows) {
  std::mt19937_64 random(seed);
  Changes changes;
  for (const DeltaTable& t : header.tables) {
    for (size_t i = 0; i < rows; ++i) {
      Change c{random() % 3 == 0, {}};
      if (!c.erased) c.row.resize(header.row_bytes(t));
      for (uint8_t& b : c.row) b = static_cast<uint8_t>(random());
      const uint64_t p = i == 0 ? 0 : i == 1 ? ~uint64_t{0} : random();
      changes[t.id.value][Position(p)] = std::move(c);
    }
  }
  return changes;
}

DeltaSummary Write(const std::string& path, const DeltaHeader& header, const Changes& changes) {
  auto writer = DeltaWriter::Create(path, header);
  REQUIRE(writer.ok());
  for (const auto& [table, rows] : changes) {
    for (const auto& [p, c] : rows) {
      REQUIRE((c.erased ? (*writer)->Delete(TableId(table), p)
                        : (*writer)->Upsert(TableId(table), p, c.row))
                  .ok());
    }
  }
  auto done = (*writer)->Finish();
  REQUIRE(done.ok());
  return *done;
}

Changes Read(DeltaReader& reader) {
  Changes changes;
  DeltaBlock block;
  for (;;) {
    auto more = reader.Next(block);
    INFO(more.status());
    REQUIRE(more.ok());
    if (!*more) return changes;
    const DeltaTable& table = *reader.header().Find(block.table);
    const size_t row_bytes = reader.header().row_bytes(table);
    for (size_t i = 0; i < block.keys.size(); ++i) {
      const Position p = table.kind == TableKind::kDense
                             ? Position(block.keys[i])
                             : PositionOf(Key(block.keys[i]), TableSalt(table.id));
      Change c{block.rows == nullptr, {}};
      if (!c.erased) c.row.assign(block.rows + i * row_bytes, block.rows + (i + 1) * row_bytes);
      REQUIRE(changes[block.table.value].emplace(p, c).second);
    }
  }
}

std::vector<uint8_t> Bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// All blocks are full, but for the last of upserts and of deletes of each table.
uint64_t MostBytes(const DeltaHeader& header, const Changes& changes) {
  uint64_t payload = 0;
  for (const auto& [table, rows] : changes) {
    for (const auto& [p, c] : rows) payload += 8 + c.row.size();
  }
  const uint64_t blocks = payload / kDeltaBlockBytes + 2 * header.tables.size();
  return EncodeDeltaHeader(header).size() + payload + (blocks + 1) * kDeltaBlockHead + 16;
}

TEST_CASE("what is written is read, in blocks", "[delta]") {
  TempFolder folder;
  for (const bool with_state : {false, true}) {
    for (const size_t rows : {0, 1, 2, 3000, 30000}) {
      const DeltaHeader header = Header(with_state);
      const std::string path = folder.path() + "/delta";
      const Changes changes = rows == 0 ? Changes() : RandomChanges(header, rows, rows);
      const DeltaSummary written = Write(path, header, changes);
      CHECK(written.bytes == std::filesystem::file_size(path));
      CHECK(written.bytes <= MostBytes(header, changes));
      auto reader = DeltaReader::Open(path);
      REQUIRE(reader.ok());
      CHECK((*reader)->header() == header);
      CHECK(Read(**reader) == changes);
      CHECK((*reader)->summary() == written);
      CHECK(VerifyDelta(path).value() == written);
    }
  }
}

TEST_CASE("rows of one float and of many, one at a time", "[delta]") {
  TempFolder folder;
  DeltaHeader header = Header(true);
  header.tables = {{TableId(0), TableKind::kHashed, 4096 * 40, 4096 * 40}};  // beyond a block
  const std::string path = folder.path() + "/delta";
  const Changes changes = RandomChanges(header, 3, 3);
  Write(path, header, changes);
  auto reader = DeltaReader::Open(path);
  REQUIRE(reader.ok());
  CHECK(Read(**reader) == changes);
}

TEST_CASE("a delta has as many tables as a model may have, and no more", "[delta]") {
  TempFolder folder;
  const std::string path = folder.path() + "/delta";
  DeltaHeader header = Header(true);
  header.tables.clear();
  for (uint32_t t = 0; t < 1024 + 1; ++t) {
    header.tables.push_back(
        {TableId(t), t == 1 ? TableKind::kDense : TableKind::kHashed, 2, t % 3});
  }
  const Changes changes = RandomChanges(header, 7, 3);
  Write(path, header, changes);
  auto reader = DeltaReader::Open(path);
  INFO(reader.status());
  REQUIRE(reader.ok());
  CHECK((*reader)->header() == header);
  CHECK(Read(**reader) == changes);
  header.tables.push_back({TableId(1025), TableKind::kHashed, 2, 0});
  const std::vector<uint8_t> more = EncodeDeltaHeader(header);
  CHECK_FALSE(DeltaHeaderBytes(more).has_value());
}

TEST_CASE("what cannot be is refused by the writer", "[delta]") {
  TempFolder folder;
  auto writer = DeltaWriter::Create(folder.path() + "/delta", Header(false));
  REQUIRE(writer.ok());
  const std::vector<uint8_t> row(12);
  CHECK((*writer)->Upsert(TableId(0), Position(5), row).ok());
  CHECK(absl::IsInvalidArgument((*writer)->Upsert(TableId(0), Position(5), row)));
  CHECK((*writer)->Delete(TableId(0), Position(4)).ok());
  CHECK(absl::IsInvalidArgument((*writer)->Delete(TableId(0), Position(3))));
  CHECK(absl::IsInvalidArgument((*writer)->Upsert(TableId(1), Position(6), row)));
  CHECK(absl::IsInvalidArgument((*writer)->Upsert(TableId(0), Position(6), {row.data(), 11})));
  DeltaHeader header = Header(false);
  std::swap(header.tables[0], header.tables[1]);
  CHECK_FALSE(DeltaWriter::Create(folder.path() + "/other", header).ok());
  CHECK(absl::IsNotFound(DeltaWriter::Create(folder.path() + "/no/file", Header(false)).status()));
}

TEST_CASE("every bit flip and every cut is found, with its offset", "[delta]") {
  TempFolder folder;
  const std::string path = folder.path() + "/delta";
  const DeltaHeader header = Header(true);
  Write(path, header, RandomChanges(header, 5, 4));
  const std::vector<uint8_t> whole = Bytes(path);
  REQUIRE(ReadWholeDelta(whole).ok());
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::vector<uint8_t> bytes = whole;
    bytes[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    const absl::Status s = ReadWholeDelta(bytes);
    INFO("bit " << bit << ": " << s);
    REQUIRE(absl::IsDataLoss(s));
    REQUIRE(s.message().find("delta, offset ") == 0);
  }
  for (size_t size = 0; size < whole.size(); ++size) {
    REQUIRE(absl::IsDataLoss(ReadWholeDelta(std::span(whole).first(size))));
  }
  std::vector<uint8_t> longer = whole;
  longer.push_back(0);
  CHECK(absl::IsDataLoss(ReadWholeDelta(longer)));
}

TEST_CASE("no bytes make the reader break its word, checksums mended or not", "[delta][seeds]") {
  int accepted = 0;
  for (const uint64_t seed : Seeds("delta_bytes", 1, 20000)) {
    std::mt19937_64 random(seed);
    std::vector<uint8_t> bytes = SmallDelta(random() % 8);
    REQUIRE(ReadWholeDelta(bytes).ok());
    for (uint64_t i = 0, n = 1 + random() % 3; i < n; ++i) {
      const size_t at = random() % bytes.size();
      switch (random() % 3) {
        case 0:
          bytes[at] = static_cast<uint8_t>(random());
          break;
        case 1:
          bytes.resize(at + 1);
          break;
        default: {  // a number that is too large, or one off
          const uint64_t value = random() % 2 ? ~uint64_t{0} >> random() % 64 : random() % 16;
          if (bytes.size() - at >= 8) std::memcpy(&bytes[at], &value, 8);
        }
      }
    }
    MendChecksums(bytes);
    const absl::Status s = ReadWholeDelta(bytes);
    INFO("seed " << seed << ": " << s);
    REQUIRE((s.ok() || absl::IsDataLoss(s)));
    accepted += s.ok();
  }
  if (!SeedsAreGiven()) CHECK(accepted > 0);  // rows and hashes may be anything
}

TEST_CASE("a delta that does not follow is refused, with both moments", "[delta]") {
  DeltaHeader delta = Header(false);
  CHECK(CheckFollows(delta, DeltaPoint{10, {1, 2}}).ok());
  for (const DeltaPoint at : {DeltaPoint{9, {1, 2}}, DeltaPoint{10, {1, 3}}, delta.to}) {
    const absl::Status s = CheckFollows(delta, at);
    CHECK(absl::IsFailedPrecondition(s));
    CHECK(s.message().find("one between is missing, or was applied") != std::string::npos);
  }
  CHECK(absl::IsFailedPrecondition(CheckFollows(delta, std::nullopt)));
  delta.whole = true;
  CHECK(CheckFollows(delta, std::nullopt).ok());
  CHECK(absl::IsFailedPrecondition(CheckFollows(delta, DeltaPoint{10, {1, 2}})));
}

}  // namespace
}  // namespace strata::storage

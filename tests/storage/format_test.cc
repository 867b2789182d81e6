// FORMAT.md suffices: a program that knows the document alone (format_reader.py) reads what these
// files were written from.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "proto/core/ids.h"
#include "proto/core/position.h"
#include "storage/delta/file.h"
#include "storage/delta/removed_stream.h"
#include "storage/row_file/tier.h"
#include "tests/seed.h"
#include "tests/skip.h"
#include "tests/temp_folder.h"

namespace strata::storage {
namespace {

using Catch::Generators::from_range;

std::string Text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool HavePython() { return std::system("python3 -c '' >/dev/null 2>&1") == 0; }

// What the reader prints of a file or folder; nothing but its complaint when it fails.
std::string ReadByDocument(const std::string& what, const std::string& path,
                           const std::string& scratch) {
  const std::string command = absl::StrCat("python3 tests/storage/format_reader.py ", what, " '",
                                           path, "' >", scratch, "/out 2>", scratch, "/err");
  const int code = std::system(command.c_str());
  INFO(Text(scratch + "/err"));
  CHECK(code == 0);
  return Text(scratch + "/out");
}

std::string Hex(std::span<const uint8_t> bytes) {
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

std::vector<uint8_t> RandomBytes(size_t size, std::mt19937_64& random) {
  std::vector<uint8_t> out(size);
  for (uint8_t& b : out) b = static_cast<uint8_t>(random());
  return out;
}

// The lines are compared as a whole, but not printed as a whole: there are many.
void CheckLines(const std::vector<std::string>& expected, const std::string& got) {
  const std::string want = absl::StrJoin(expected, "\n") + "\n";
  const auto apart = std::mismatch(want.begin(), want.end(), got.begin(), got.end());
  INFO("apart at byte " << apart.first - want.begin() << " of " << want.size() << ", "
                        << got.size());
  CHECK((want == got));
}

std::vector<DeltaTable> Tables() {
  return {{TableId(0), TableKind::kHashed, 17, 18}, {TableId(1), TableKind::kDense, 256, 512}};
}

// Rows and keys of a table, ascending by position; half of them go.
void FillDelta(const DeltaHeader& header, const DeltaTable& table, size_t keys, DeltaWriter& writer,
               std::mt19937_64& random, std::vector<std::string>& expected) {
  std::map<uint64_t, uint64_t> key_at;  // by position
  for (size_t i = 0; i < keys; ++i) {
    const uint64_t key = i == 0 ? 0 : i == 1 ? ~uint64_t{0} : random();
    key_at[table.kind == TableKind::kDense ? key
                                           : PositionOf(Key(key), TableSalt(table.id)).value] = key;
  }
  for (const auto& [position, key] : key_at) {
    if (!header.whole && random() % 2 == 0) {
      REQUIRE(writer.Delete(table.id, Position(position)).ok());
      expected.push_back(absl::StrCat("remove ", table.id.value, " ", key));
      continue;
    }
    const auto row = RandomBytes(header.row_bytes(table), random);
    REQUIRE(writer.Upsert(table.id, Position(position), row).ok());
    expected.push_back(absl::StrCat("put ", table.id.value, " ", key, " ", Hex(row)));
  }
}

TEST_CASE("a delta is as FORMAT.md says", "[format][seeds]") {
  if (!HavePython()) STRATA_SKIP("there is no python3");
  const uint64_t seed = GENERATE(from_range(Seeds("format_delta")));
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (const bool whole : {false, true}) {
    TempFolder folder;
    DeltaHeader header;
    header.with_state = whole;
    header.all_tables = whole;
    header.whole = whole;
    if (!whole) header.from = {random(), {random(), random()}};
    header.to = {random(), {random(), random()}};
    header.tables = Tables();
    const std::string path = folder.path() + "/delta";
    auto writer = DeltaWriter::Create(path, header);
    REQUIRE(writer.ok());
    std::vector<std::string> expected = {absl::StrFormat(
        "flags %d from %d %x %x to %d %x %x", whole ? 7 : 0, header.from.step, header.from.hash.low,
        header.from.hash.high, header.to.step, header.to.hash.low, header.to.hash.high)};
    FillDelta(header, header.tables[0], 4000, **writer, random, expected);
    FillDelta(header, header.tables[1], 300, **writer, random, expected);
    REQUIRE((*writer)->Finish().ok());
    REQUIRE(std::filesystem::file_size(path) > 2 * kDeltaBlockBytes * (whole ? 1 : 0));
    // Blocks of upserts and of deletes lie in no order.
    std::vector<std::string> got =
        absl::StrSplit(ReadByDocument("delta", path, folder.path()), '\n', absl::SkipEmpty());
    std::sort(expected.begin(), expected.end());
    std::sort(got.begin(), got.end());
    CheckLines(expected, absl::StrJoin(got, "\n") + "\n");
  }
}

TEST_CASE("removals are as FORMAT.md says", "[format][seeds]") {
  if (!HavePython()) STRATA_SKIP("there is no python3");
  const uint64_t seed = GENERATE(from_range(Seeds("format_removals")));
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  TempFolder folder;
  RemovedWriter::Options options;
  options.folder = folder.path() + "/removed";
  options.name = {Generation(3), Step(40), ShardId(7)};
  options.tables = Tables();
  RemovedWriter writer(options);
  REQUIRE(writer.StartNew().ok());
  std::vector<std::string> expected = {"generation 3 from 40 shard 7"};
  for (uint64_t step = 41; step < 60; ++step) {
    for (const DeltaTable& table : options.tables) {
      if (random() % 3 == 0) continue;
      std::map<uint64_t, uint64_t> key_at;
      for (uint64_t i = 0, n = random() % (step == 50 ? 40000 : 20); i < n; ++i) {
        const uint64_t p = random();
        key_at[p] =
            table.kind == TableKind::kDense ? p : KeyOf(Position(p), TableSalt(table.id)).value;
      }
      std::vector<Position> positions;
      for (const auto& [position, key] : key_at) {
        positions.emplace_back(position);
        expected.push_back(absl::StrCat("remove ", table.id.value, " ", key, " ", step));
      }
      const std::span<const Position> all(positions);
      for (size_t at = 0; at < all.size(); at += RemovedWriter::kMostAdd) {
        REQUIRE(writer.MakeRoom(table.id, step - 1, step).ok());
        writer.Add(table.id, all.subspan(at, std::min(RemovedWriter::kMostAdd, all.size() - at)));
      }
    }
    REQUIRE(writer.EndCommit().ok());
  }
  CheckLines(expected, ReadByDocument("removals", writer.path(), folder.path()));
  // A commit in progress does not count, however much of it is there.
  const uint64_t whole = writer.bytes();
  REQUIRE(writer.MakeRoom(TableId(0), 59, 60).ok());
  writer.Add(TableId(0), std::vector<Position>{Position(1), Position(2)});
  REQUIRE(writer.EndCommit().ok());
  for (const uint64_t size : {writer.bytes() - 1, whole + 150, whole + 30}) {
    std::filesystem::resize_file(writer.path(), size);
    CheckLines(expected, ReadByDocument("removals", writer.path(), folder.path()));
  }
}

TEST_CASE("a row file is as FORMAT.md says", "[format][seeds]") {
  if (!HavePython()) STRATA_SKIP("there is no python3");
  const uint64_t seed = GENERATE(from_range(Seeds("format_row_file")));
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  TempFolder folder;
  const std::string path = folder.path() + "/tier";
  auto tier = OpenRowFileTier({.directory = path, .partitions = 16, .memtable_bytes = 512 << 10});
  REQUIRE(tier.ok());
  const std::map<uint32_t, size_t> row_bytes = {{0, 128}, {1, 20}, {5, 70000}};
  std::map<std::pair<uint32_t, uint64_t>, std::vector<uint8_t>> model;
  for (int batch = 0; batch < 60; ++batch) {
    for (const auto& [table, bytes] : row_bytes) {
      // A tenth of the rows are written again, and half as many are deleted.
      const size_t rows = table == 5 ? batch % 20 == 0 : table == 1 ? 100 : 400;
      std::map<uint64_t, std::vector<uint8_t>> changed;
      for (size_t i = 0; i < rows; ++i) changed[random()] = RandomBytes(bytes, random);
      std::vector<Position> gone;
      const auto from = model.lower_bound({table, random()});
      for (auto it = from; it != model.end() && it->first.first == table; ++it) {
        if (changed.size() >= rows + rows / 10) break;
        changed[it->first.second] = RandomBytes(bytes, random);
      }
      for (auto it = model.lower_bound({table, random()});
           it != model.end() && it->first.first == table && gone.size() < rows / 20; ++it) {
        if (!changed.contains(it->first.second)) gone.emplace_back(it->first.second);
      }
      std::vector<Position> positions;
      std::vector<const uint8_t*> values;
      for (const auto& [position, row] : changed) {
        positions.emplace_back(position);
        values.push_back(row.data());
      }
      REQUIRE((*tier)->Write(TableId(table), positions, values, bytes).ok());
      REQUIRE((*tier)->Delete(TableId(table), gone).ok());
      for (auto& [position, row] : changed) model[{table, position}] = std::move(row);
      for (const Position p : gone) model.erase({table, p.value});
    }
    // Deltas alone; then the first bases; then deltas over bases.
    if (batch != 0 && batch % 20 != 19) continue;
    REQUIRE((*tier)->Sync().ok());  // nothing moves behind it
    std::vector<std::string> expected;
    for (const auto& [key, row] : model) {
      expected.push_back(absl::StrCat("row ", key.first, " ", key.second, " ", Hex(row)));
    }
    CheckLines(expected, ReadByDocument("rowfile", path, folder.path()));
    const std::string said = Text(folder.path() + "/err");
    INFO(said);
    CHECK((said.find(" 0 bases") != std::string::npos) == (batch == 0));
  }
}

}  // namespace
}  // namespace strata::storage

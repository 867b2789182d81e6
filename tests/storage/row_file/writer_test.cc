// Versions of a row file: what merges and drops leave, and what the file says after any of them.
#include "storage/row_file/writer.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "proto/core/partition.h"
#include "storage/row_file/cursor.h"
#include "storage/row_file/memtable.h"
#include "storage/row_file/version.h"
#include "storage/row_file/volume.h"
#include "storage/tier/row_tier.h"
#include "tests/seed.h"
#include "tests/storage/io/scripted_files.h"
#include "tests/temp_folder.h"

namespace strata::storage::row_file {
namespace {

using Call = ScriptedFiles::Call;
using Rows = std::map<uint64_t, uint8_t>;  // what every byte of a row is; by position
constexpr uint32_t kRowBytes = 100;
constexpr uint32_t kPartitions = 8;
constexpr TableId kTable(3);
const Partitioning kPartitioning(kPartitions);

// A folder and one writer, as a process has them.
struct Bench {
  explicit Bench(std::string path, FileSystem* files) : directory(std::move(path)) {
    auto opened = Volume::Open(directory + "/ROWS", *files);
    if (!opened.ok()) FAIL(opened.status().ToString());
    volume = *std::move(opened);
    writer = std::make_unique<VersionWriter>(
        WriterOptions{.directory = directory, .partitioning = kPartitioning, .files = files},
        volume.get());
    auto loaded = writer->Load();
    if (!loaded.ok()) FAIL(loaded.status().ToString());
    version = *std::move(loaded);
  }

  void Take(absl::StatusOr<VersionPointer> next) {
    if (!next.ok()) FAIL(next.status().ToString());
    version = *std::move(next);
  }
  // Value 0: the row is deleted.
  void Flush(const Rows& rows, TableId table = kTable) {
    Memtable memtable;
    for (const auto& [position, value] : rows) {
      const std::vector<uint8_t> row(kRowBytes, value);
      memtable.Put(table, kRowBytes, Position(position), value == 0 ? nullptr : row.data());
    }
    Take(writer->Flush(*version, memtable));
  }
  void MergeDeltas(size_t first) {
    Take(writer->Run(*version, {.range = 0, .first_delta = first, .into_base = false, .level = 1}));
  }
  void MakeBase() {
    Take(writer->Run(*version, {.range = 0, .first_delta = 0, .into_base = true, .level = 0}));
  }
  Rows Contents(TableId table = kTable) const {
    auto cursor = NewCursor({.table = table,
                             .first = Position(0),
                             .last = Position(~uint64_t{0}),
                             .row_bytes = kRowBytes,
                             .directory = directory,
                             .version = version,
                             .frozen = nullptr,
                             .active = {}});
    Rows rows;
    for (; cursor->Valid(); cursor->Next()) {
      const auto row = cursor->row();
      REQUIRE(std::count(row.begin(), row.end(), row[0]) == kRowBytes);
      rows[cursor->position().value] = row[0];
    }
    INFO(cursor->status());
    REQUIRE(cursor->status().ok());
    return rows;
  }
  std::vector<uint64_t> Numbers() const {
    std::vector<uint64_t> numbers;
    for (const Range& range : version->ranges) {
      if (range.base != nullptr) numbers.push_back(range.base->place().number);
      for (const auto& delta : range.deltas) numbers.push_back(delta->place().number);
    }
    return numbers;
  }

  const std::string directory;
  std::unique_ptr<Volume> volume;
  std::unique_ptr<VersionWriter> writer;
  VersionPointer version;
};

Rows Every(uint64_t step, uint8_t value) {
  Rows rows;
  for (uint64_t i = 0; i < 400; i += step) rows[i << 50] = value;
  return rows;
}

TEST_CASE("a deleted row stays deleted through every merge", "[storage][row_file]") {
  TempFolder folder;
  Bench bench(folder.path(), &FileSystem::Kernel());
  Rows expected = Every(1, 1);
  bench.Flush(expected);
  bench.MakeBase();
  bench.Flush(Every(3, 0));
  bench.Flush(Every(4, 2));
  bench.Flush(Every(5, 0));
  for (const auto& [p, value] : Every(3, 0)) expected.erase(p);
  for (const auto& [p, value] : Every(4, 2)) expected[p] = value;
  for (const auto& [p, value] : Every(5, 0)) expected.erase(p);
  CHECK(bench.Contents() == expected);
  SECTION("of all deltas") { bench.MergeDeltas(0); }
  SECTION("of the newest") { bench.MergeDeltas(1); }
  CHECK(bench.Contents() == expected);
  bench.MakeBase();
  CHECK(bench.Contents() == expected);
  // Only a base may forget that a row was deleted.
  REQUIRE(bench.version->ranges.size() == 1);
  CHECK(bench.version->ranges[0].deltas.empty());
  CHECK(bench.version->ranges[0].base->rows() == expected.size());
}

TEST_CASE("numbers of extents are never given twice, also over restarts", "[storage][row_file]") {
  TempFolder folder;
  std::set<uint64_t> seen;
  std::vector<uint64_t> before;
  for (int start = 0; start < 4; ++start) {
    Bench bench(folder.path(), &FileSystem::Kernel());
    REQUIRE(bench.Numbers() == before);
    const auto note = [&] {
      for (const uint64_t number : bench.Numbers()) {
        if (std::find(before.begin(), before.end(), number) != before.end()) continue;
        REQUIRE(seen.insert(number).second);
      }
      before = bench.Numbers();
    };
    for (uint8_t i = 1; i <= 3; ++i) {
      bench.Flush(Every(i, i));
      note();
    }
    if (start % 2 == 1) {
      bench.MakeBase();
      note();
    }
    REQUIRE(bench.writer->Commit(*bench.version).ok());
  }
}

// The manifest that the disk has may be the old one for a long time: what it names stays.
TEST_CASE("chunks are used again only when no manifest can name them",
          "[storage][row_file][seeds]") {
  const std::vector<uint64_t> seeds = Seeds("row_file_chunks", 1, 6);
  struct Case {
    const char* name;
    Call call;
    uint64_t nth;  // fails, of the commit after the merge; 0: there is no such commit
  };
  const Case cases[] = {
      {"no commit", Call::kOpen, 0},     {"the manifest cannot be opened", Call::kOpen, 1},
      {"not written", Call::kWrite, 1},  {"not synced", Call::kSync, 2},
      {"not renamed", Call::kRename, 1}, {"the folder is not synced", Call::kSync, 3}};
  for (const Case& c : cases) {
    for (const uint64_t seed : seeds) {
      INFO(c.name << ", seed " << seed);
      TempFolder folder;
      ScriptedFiles files(seed);
      const std::string path = folder.path() + "/tier", after = folder.path() + "/after";
      REQUIRE(std::filesystem::create_directories(path));
      REQUIRE(std::filesystem::create_directories(after));
      Bench bench(path, &files);
      for (uint8_t i = 1; i <= 8; ++i) bench.Flush(Every(i, i));
      REQUIRE(bench.writer->Commit(*bench.version).ok());
      const Rows expected = bench.Contents();
      // The extents that were merged go with the old version.
      if (seed % 2 == 0) {
        bench.MergeDeltas(0);
      } else {
        bench.MakeBase();
      }
      if (c.nth != 0) {
        files.Fail(c.call, EIO, c.nth);
        REQUIRE_FALSE(bench.writer->Commit(*bench.version).ok());
      }
      for (uint8_t i = 1; i <= 8; ++i) bench.Flush(Every(1, static_cast<uint8_t>(100 + i)));
      files.PowerLoss(path, after);
      // The script does not see posix_fallocate, which gives a file its size.
      std::filesystem::resize_file(after + "/ROWS", std::filesystem::file_size(path + "/ROWS"));
      CHECK(Bench(after, &FileSystem::Kernel()).Contents() == expected);
      // Once a commit goes through, the newest is what the disk has.
      REQUIRE(bench.writer->Commit(*bench.version).ok());
      const std::string later = folder.path() + "/later";
      REQUIRE(std::filesystem::create_directories(later));
      files.PowerLoss(path, later);
      std::filesystem::resize_file(later + "/ROWS", std::filesystem::file_size(path + "/ROWS"));
      CHECK(Bench(later, &FileSystem::Kernel()).Contents() == Every(1, 108));
    }
  }
}

TEST_CASE("what merges leave behind is used again", "[storage][row_file]") {
  TempFolder folder;
  Bench bench(folder.path(), &FileSystem::Kernel());
  for (int round = 0; round < 24; ++round) {
    bench.Flush(Every(1, static_cast<uint8_t>(1 + round)));
    bench.MakeBase();
    REQUIRE(bench.writer->Commit(*bench.version).ok());
  }
  // A base, the delta over it, the base that replaces both, and chunks that wait for a manifest:
  // some 50 KB each.
  CHECK(bench.volume->file_bytes() <= (uint64_t{1} << 20));
  CHECK(bench.Contents() == Every(1, 24));
}

TEST_CASE("partitions are dropped to the row, wherever ranges begin",
          "[storage][row_file][seeds]") {
  const uint64_t seed = GENERATE(from_range(Seeds("row_file_drops")));
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  std::vector<uint64_t> edges;
  for (uint32_t p = 0; p < kPartitions; ++p) {
    const uint64_t first = kPartitioning.First(PartitionId(p)).value;
    const uint64_t last = kPartitioning.Last(PartitionId(p)).value;
    for (const uint64_t at : {first, first + 1, first + (last - first) / 2, last - 1, last}) {
      edges.push_back(at);
    }
  }
  const TableId tables[] = {TableId(0), TableId(7), TableId(~uint32_t{0})};
  for (int round = 0; round < 8; ++round) {
    TempFolder folder;
    Bench bench(folder.path(), &FileSystem::Kernel());
    Version ranges;
    std::set<RowKey> begins;
    for (uint64_t n = random() % 25; n > 0; --n) {
      begins.insert({tables[random() % 3], Position(edges[random() % edges.size()])});
    }
    begins.erase({TableId(0), Position(0)});
    for (const RowKey& begin : begins) {
      ranges.ranges.push_back({.begin = begin, .base = nullptr, .deltas = {}});
    }
    bench.version = std::make_shared<const Version>(std::move(ranges));
    std::map<TableId, Rows> expected;
    for (uint8_t flush = 1; flush <= 2; ++flush) {
      for (const TableId table : tables) {
        Rows rows;
        for (const uint64_t at : edges) {
          if (random() % 3 != 0) rows[at] = flush;
        }
        bench.Flush(rows, table);
        for (const auto& [p, value] : rows) expected[table][p] = value;
      }
    }
    for (int drop = 0; drop < 4; ++drop) {
      const auto first = static_cast<uint32_t>(random() % kPartitions);
      const auto last = std::min(kPartitions - 1, first + static_cast<uint32_t>(random() % 3));
      bench.Take(bench.writer->Drop(*bench.version, PartitionId(first), PartitionId(last)));
      for (auto& [table, rows] : expected) {
        rows.erase(rows.lower_bound(kPartitioning.First(PartitionId(first)).value),
                   rows.upper_bound(kPartitioning.Last(PartitionId(last)).value));
      }
      for (const TableId table : tables) {
        INFO("partitions " << first << " to " << last << ", table " << table.value);
        REQUIRE(bench.Contents(table) == expected[table]);
      }
    }
    REQUIRE(bench.writer->Commit(*bench.version).ok());
    bench.version.reset();
    Bench again(folder.path(), &FileSystem::Kernel());
    for (const TableId table : tables) REQUIRE(again.Contents(table) == expected[table]);
  }
}

TEST_CASE("a manifest that gives a chunk to two extents is damaged", "[storage][row_file]") {
  TempFolder folder;
  {
    Bench bench(folder.path(), &FileSystem::Kernel());
    bench.Flush(Every(1, 1));
    REQUIRE(bench.writer->Commit(*bench.version).ok());
    Version twice = *bench.version;
    twice.ranges[0].deltas.push_back(twice.ranges[0].deltas[0]);
    REQUIRE(bench.writer->Commit(twice).ok());
  }
  auto volume = Volume::Open(folder.path() + "/ROWS");
  REQUIRE(volume.ok());
  VersionWriter writer({.directory = folder.path(), .partitioning = kPartitioning}, volume->get());
  CHECK(absl::IsDataLoss(writer.Load().status()));
}

}  // namespace
}  // namespace strata::storage::row_file

#include "storage/checkpoint/shard_file.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <random>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "proto/core/checksum.h"
#include "proto/core/cut_file_name.h"
#include "proto/core/ids.h"
#include "proto/core/shard_head.h"
#include "proto/core/uid.h"
#include "tests/small_disk.h"
#include "tests/storage/checkpoint/shard_content.h"
#include "tests/storage/io/file_bytes.h"
#include "tests/temp_folder.h"

namespace strata::storage {
namespace {

std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename());
  }
  return names;
}

TEST_CASE("a file's first bytes say who wrote it, to those who read no rows",
          "[storage][shard_file]") {
  TempFolder folder;
  const std::string path = folder.path() + "/a.shard";
  REQUIRE(WriteContent(path, MakeContent(10, 1)).ok());
  Bytes start = ReadFile(path);
  REQUIRE(DecodeShardWriter(start).has_value());
  CHECK(*DecodeShardWriter(start) == ContentHeader().writer());
  CHECK_FALSE(DecodeShardWriter(std::span(start).first(150)).has_value());
  for (const size_t at : {0, 9, 24, 80, 95, 105, 170}) {
    CAPTURE(at);
    Bytes damaged = start;
    damaged[at] ^= 1;
    CHECK_FALSE(DecodeShardWriter(damaged).has_value());
  }
}

TEST_CASE("a file that is being written says for which job", "[storage][shard_file]") {
  TempFolder folder;
  auto writer = ShardFileWriter::Create(folder.path() + "/a.shard", ContentHeader());
  REQUIRE(writer.ok());
  const std::string begun = NameWhileWritten("a.shard", ContentHeader().identity.job);
  CHECK(NamesIn(folder.path()) == std::vector<std::string>{begun});
}

TEST_CASE("what is written is read, with its summary", "[storage][shard_file]") {
  TempFolder folder;
  const std::string path = folder.path() + "/a.shard";
  for (size_t rows : {size_t{0}, size_t{1}, size_t{10}, size_t{20'000}}) {
    const Content content = MakeContent(rows, rows + 1);
    const auto summary = WriteContent(path, content);
    REQUIRE(summary.ok());
    const Bytes bytes = ReadFile(path);
    CHECK(summary->bytes == bytes.size());
    CHECK(summary->crc32c == Crc32c(bytes));
    CHECK(summary->rows == 2 * rows);
    CHECK(NamesIn(folder.path()) == std::vector<std::string>{"a.shard"});
    HashSum hash;
    for (const TableShape& table : ContentHeader().tables) {
      for (const auto& [position, row] : content.rows.at(table.id.value)) {
        hash += HashRow(table.id, table.KeyAt(Position(position)), row);
      }
    }
    CHECK(summary->hash == hash);
    Content read;
    REQUIRE(ReadContent(path, kAllPartitions, read).ok());
    CHECK(read == content);
    auto reader = ShardFileReader::Open(path);
    REQUIRE(reader.ok());
    CHECK((*reader)->header().clock == Step(99));
    CHECK((*reader)->header().log_segment == 5);
    CHECK((*reader)->header().tables == ContentHeader().tables);
    CHECK((*reader)->rows(TableId(2)) == rows);
    const auto verified = (*reader)->Verify();
    REQUIRE(verified.ok());
    CHECK(verified->crc32c == summary->crc32c);
    CHECK(verified->hash == hash);
  }
}

TEST_CASE("a reader of some partitions gets theirs, and all of them", "[storage][shard_file]") {
  TempFolder folder;
  const std::string path = folder.path() + "/a.shard";
  const Content content = MakeContent(5000, 3);
  REQUIRE(WriteContent(path, content).ok());
  for (uint32_t a = 0; a < kContentPartitions; a += 3) {
    for (uint32_t b = a; b < kContentPartitions; b += 2) {
      Content part;
      REQUIRE(ReadContent(path, {PartitionId(a), PartitionId(b)}, part).ok());
      Content expected = content;
      const auto outside = [&](const auto& item) {
        const uint32_t p = ContentHeader().partitioning.Of(Position(item.first)).value;
        return p < a || p > b;
      };
      for (auto& [table, rows] : expected.rows) std::erase_if(rows, outside);
      for (auto& [table, images] : expected.images) std::erase_if(images, outside);
      std::erase_if(expected.sections,
                    [&](const auto& s) { return std::get<2>(s) < a || std::get<1>(s) > b; });
      REQUIRE(part == expected);
    }
  }
}

TEST_CASE("a flipped bit or a cut anywhere is found", "[storage][shard_file]") {
  TempFolder folder;
  const std::string path = folder.path() + "/a.shard";
  REQUIRE(WriteContent(path, MakeContent(4, 8)).ok());
  const Bytes whole = ReadFile(path);
  const auto read_all = [&] {
    Content content;
    return ReadContent(path, kAllPartitions, content);
  };
  const auto verify = [&] {
    auto reader = ShardFileReader::Open(path);
    return reader.ok() ? (*reader)->Verify().status() : reader.status();
  };
  for (size_t i = 0; i < whole.size(); ++i) {
    Bytes bad = whole;
    bad[i] ^= static_cast<uint8_t>(1 << (i % 8));
    WriteFile(path, bad);
    const absl::Status s = read_all();
    REQUIRE(s.code() == absl::StatusCode::kDataLoss);
    REQUIRE(std::string(s.message()).find(path + ", offset ") == 0);
    REQUIRE(verify().code() == absl::StatusCode::kDataLoss);
    WriteFile(path, Bytes(whole.begin(), whole.begin() + i));
    REQUIRE(read_all().code() == absl::StatusCode::kDataLoss);
    REQUIRE(verify().code() == absl::StatusCode::kDataLoss);
  }
  Bytes longer = whole;
  longer.push_back(0);
  WriteFile(path, longer);
  CHECK(read_all().code() == absl::StatusCode::kDataLoss);
  WriteFile(path, whole);
  CHECK(read_all().ok());
}

TEST_CASE("an increment: rows in blocks as they are, and rows that are gone",
          "[storage][shard_file]") {
  TempFolder folder;
  const std::string path = folder.path() + "/a.1.shard";
  ShardFileHeader header = ContentHeader();
  header.kind = ShardFileKind::kIncrement;
  header.log_segment = 0;
  header.base = Step(98);
  header.base_cut = 16;
  const Content content = MakeContent(20, 5);
  const uint64_t first = header.partitioning.First(header.partitions.first).value;
  const std::vector<Position> gone = {Position(first + 1), Position(first + 5)};
  const auto write = [&](const ShardFileHeader& as) -> absl::StatusOr<ShardFileSummary> {
    auto writer = ShardFileWriter::Create(path, as);
    if (!writer.ok()) return writer.status();
    for (const TableShape& table : as.tables) {
      std::vector<Position> positions;
      Bytes rows;
      for (const auto& [position, row] : content.rows.at(table.id.value)) {
        positions.push_back(Position(position));
        rows.insert(rows.end(), row.begin(), row.end());
      }
      absl::Status s = (*writer)->AddRows(table.id, positions, rows);
      if (s.ok()) s = (*writer)->AddErased(table.id, gone);
      if (!s.ok()) return s;
    }
    return (*writer)->Finish();
  };
  CHECK(write(ContentHeader()).status().code() == absl::StatusCode::kInvalidArgument);
  const auto summary = write(header);
  REQUIRE(summary.ok());
  const Bytes whole = ReadFile(path);
  CHECK(summary->crc32c == Crc32c(whole));
  CHECK(summary->rows == 40);
  Content read;
  REQUIRE(ReadContent(path, kAllPartitions, read).ok());
  CHECK(read.rows == content.rows);
  auto reader = ShardFileReader::Open(path);
  REQUIRE(reader.ok());
  CHECK((*reader)->header().kind == ShardFileKind::kIncrement);
  CHECK((*reader)->header().base == Step(98));
  CHECK((*reader)->header().base_cut == 16);
  for (const TableShape& table : header.tables) {
    std::vector<Position> found;
    REQUIRE((*reader)
                ->ReadErased(table.id, kAllPartitions,
                             [&](std::span<const Position> positions) {
                               found.insert(found.end(), positions.begin(), positions.end());
                               return absl::OkStatus();
                             })
                .ok());
    CHECK(found == gone);
  }
  REQUIRE((*reader)->Verify().ok());
  for (size_t i = 0; i < whole.size(); ++i) {
    Bytes bad = whole;
    bad[i] ^= static_cast<uint8_t>(1 << (i % 8));
    WriteFile(path, bad);
    auto damaged = ShardFileReader::Open(path);
    const absl::Status s = damaged.ok() ? (*damaged)->Verify().status() : damaged.status();
    REQUIRE(s.code() == absl::StatusCode::kDataLoss);
    REQUIRE(std::string(s.message()).find(path + ", offset ") == 0);
  }
}

TEST_CASE("a file says who wrote it", "[storage][shard_file][identity]") {
  TempFolder folder;
  const std::string path = folder.path() + "/a.shard";
  REQUIRE(WriteContent(path, MakeContent(4, 8)).ok());
  auto reader = ShardFileReader::Open(path);
  REQUIRE(reader.ok());
  const FileWriter here = (*reader)->header().writer();
  CHECK(here == ContentHeader().writer());
  CHECK((*reader)->header().map_epoch == ContentHeader().map_epoch);
  CHECK(CheckWriter((*reader)->header(), path, here).ok());
  // And to who reads no more than that.
  const Bytes bytes = ReadFile(path);
  CHECK(DecodeShardWriter(std::span(bytes).first(std::min(bytes.size(), kShardHeadBytes))) == here);
  FileWriter others[] = {here, here, here, here};
  others[0].identity.cluster.low ^= 1;
  others[1].identity.job.high ^= 1;
  others[2].generation = Generation(here.generation.value + 1);
  others[3].cut = here.cut + 1;
  for (const FileWriter& other : others) {
    const absl::Status s = CheckWriter((*reader)->header(), path, other);
    CHECK(s.code() == absl::StatusCode::kDataLoss);
    for (const std::string& part : {path, Describe(here), Describe(other)}) {
      CHECK(std::string(s.message()).find(part) != std::string::npos);
    }
  }
}

TEST_CASE("a file of an older version is refused by its number", "[storage][shard_file]") {
  TempFolder folder;
  const std::string path = folder.path() + "/a.shard";
  REQUIRE(WriteContent(path, MakeContent(4, 8)).ok());
  Bytes bytes = ReadFile(path);
  bytes[8] = 1;
  WriteFile(path, bytes);
  const absl::Status s = ShardFileReader::Open(path).status();
  CHECK(s.code() == absl::StatusCode::kUnimplemented);
  for (const std::string& part : {path, std::string("version 1;"), std::string("version 2;")}) {
    CHECK(std::string(s.message()).find(part) != std::string::npos);
  }
}

TEST_CASE("a block of another file does not pass for one's own", "[storage][shard_file]") {
  TempFolder folder;
  const std::string path = folder.path() + "/a.shard";
  REQUIRE(WriteContent(path, MakeContent(4, 8)).ok());
  const Bytes other = ReadFile(path);
  REQUIRE(WriteContent(path, MakeContent(4, 9)).ok());
  Bytes mixed = ReadFile(path);
  REQUIRE(mixed.size() == other.size());
  // The same shape: blocks lie at the same offsets, and each checks by itself.
  std::copy(other.begin(), other.begin() + other.size() / 2, mixed.begin());
  WriteFile(path, mixed);
  Content content;
  CHECK(ReadContent(path, kAllPartitions, content).code() == absl::StatusCode::kDataLoss);
}

TEST_CASE("random damage never crashes a reader", "[storage][shard_file]") {
  TempFolder folder;
  const std::string path = folder.path() + "/a.shard";
  REQUIRE(WriteContent(path, MakeContent(6, 8)).ok());
  const Bytes whole = ReadFile(path);
  std::mt19937_64 rng(4);
  for (int round = 0; round < 3000; ++round) {
    Bytes bad = whole;
    const size_t changes = 1 + rng() % 10;
    for (size_t i = 0; i < changes; ++i) bad[rng() % bad.size()] ^= 1 + rng() % 255;
    if (rng() % 3 == 0) bad.resize(rng() % (bad.size() * 2));
    if (bad == whole) continue;
    WriteFile(path, bad);
    Content content;
    REQUIRE(ReadContent(path, kAllPartitions, content).code() == absl::StatusCode::kDataLoss);
  }
}

TEST_CASE("wrong calls are refused and leave no file", "[storage][shard_file]") {
  TempFolder folder;
  const std::string path = folder.path() + "/a.shard";
  const Position inside = ContentHeader().partitioning.First(PartitionId(5));
  const Bytes row(32);
  const auto refused = [&](auto call) {
    auto writer = ShardFileWriter::Create(path, ContentHeader());
    REQUIRE(writer.ok());
    REQUIRE((*writer)->AddRow(TableId(0), inside, row).ok());
    CHECK(call(**writer).code() == absl::StatusCode::kInvalidArgument);
    CHECK((*writer)->Finish().status().code() == absl::StatusCode::kInvalidArgument);
    writer->reset();
    CHECK(std::filesystem::is_empty(folder.path()));
  };
  refused([&](ShardFileWriter& w) { return w.AddRow(TableId(0), inside, row); });
  refused([&](ShardFileWriter& w) { return w.AddRow(TableId(1), inside.Next(), row); });
  refused([&](ShardFileWriter& w) { return w.AddRow(TableId(0), inside.Next(), Bytes(31)); });
  refused([&](ShardFileWriter& w) { return w.AddRow(TableId(0), Position(~0ull), row); });
  refused([&](ShardFileWriter& w) {
    return w.AddSection({1, {PartitionId(3), PartitionId(5)}, row});
  });
  refused([&](ShardFileWriter& w) {
    const Position positions[] = {inside};
    return w.AddPreImages({TableId(0), positions, {}});
  });
  ShardFileHeader header = ContentHeader();
  header.partitions.last = PartitionId(kContentPartitions);
  CHECK(ShardFileWriter::Create(path, header).status().code() ==
        absl::StatusCode::kInvalidArgument);
  CHECK(ShardFileReader::Open(path).status().code() == absl::StatusCode::kNotFound);
}

TEST_CASE("an abandoned or failed file leaves the old one in place", "[storage][shard_file]") {
  TempFolder folder;
  const std::string path = folder.path() + "/a.shard";
  const Content content = MakeContent(10, 1);
  REQUIRE(WriteContent(path, content).ok());
  {
    auto writer = ShardFileWriter::Create(path, ContentHeader());
    REQUIRE(writer.ok());
  }
  Content read;
  REQUIRE(ReadContent(path, kAllPartitions, read).ok());
  CHECK(read == content);
  CHECK(NamesIn(folder.path()) == std::vector<std::string>{"a.shard"});
}

TEST_CASE("a full disk is a clear error and leaves nothing behind", "[storage][shard_file]") {
  TempFolder folder;
  SmallDisk disk(folder.path() + "/disk", 256 << 10);
  if (!disk.mounted()) {
    WARN("skipped: " << disk.reason());
    return;
  }
  const std::string path = disk.path() + "/a.shard";
  const auto summary = WriteContent(path, MakeContent(20'000, 1));
  CHECK(summary.status().code() == absl::StatusCode::kResourceExhausted);
  CHECK(std::string(summary.status().message()).find(path) != std::string::npos);
  CHECK(std::filesystem::is_empty(disk.path()));
  CHECK(WriteContent(path, MakeContent(100, 1)).ok());
}

}  // namespace
}  // namespace strata::storage

#include "storage/shard_file.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "proto/core/checksum.h"
#include "tests/small_disk.h"
#include "tests/temp_folder.h"

namespace strata::storage {
namespace {

using Bytes = std::vector<uint8_t>;
// What a file holds, as the test sees it.
struct Content {
  std::map<uint32_t, std::map<uint64_t, Bytes>> rows;                 // table, position
  std::map<uint32_t, std::map<uint64_t, std::vector<float>>> images;  // table, position
  std::vector<std::tuple<uint32_t, uint32_t, uint32_t, Bytes>> sections;
  friend bool operator==(const Content&, const Content&) = default;
};

constexpr uint32_t kPartitions = 16;

ShardFileHeader Header() {
  return {
      .kind = ShardFileKind::kCheckpoint,
      .job = JobId(7),
      .generation = Generation(2),
      .shard = ShardId(3),
      .partitioning = Partitioning(kPartitions),
      .partitions = {PartitionId(4), PartitionId(11)},
      .clock = Step(99),
      .log_segment = 5,
      .tables = {{TableId(0), TableKind::kHashed, 3, 3}, {TableId(2), TableKind::kDense, 4, 8}}};
}

Content MakeContent(size_t rows, uint64_t seed) {
  std::mt19937_64 rng(seed);
  const ShardFileHeader header = Header();
  const uint64_t first = header.partitioning.First(header.partitions.first).value;
  const uint64_t last = header.partitioning.Last(header.partitions.last).value;
  const auto position = [&] { return first + rng() % (last - first + 1); };
  Content content;
  for (const TableShape& table : header.tables) {
    auto& of_table = content.rows[table.id.value];
    if (rows > 1) {
      of_table[first];
      of_table[last];
    }
    while (of_table.size() < rows) of_table[position()];
    for (auto& [p, row] : of_table) {
      row.resize(table.row_bytes());
      for (uint8_t& byte : row) byte = static_cast<uint8_t>(rng());
    }
    auto& images = content.images[table.id.value];
    while (images.size() < rows / 2) images[position()] = {};
    for (auto& [p, weights] : images) {
      for (uint32_t i = 0; i < table.dim; ++i) weights.push_back(static_cast<float>(rng() % 1000));
    }
  }
  content.sections.emplace_back(1, 4, 11, Bytes(13, 0xab));
  content.sections.emplace_back(2, 5, 5, Bytes());
  content.sections.emplace_back(2, 9, 11, Bytes(64, 0x17));
  return content;
}

// Tables alternate, as a writer that goes partition by partition does.
absl::StatusOr<ShardFileSummary> Write(const std::string& path, const Content& content) {
  auto writer = ShardFileWriter::Create(path, Header());
  if (!writer.ok()) return writer.status();
  for (uint32_t p = 0; p < kPartitions; ++p) {
    for (const auto& [table, rows] : content.rows) {
      for (const auto& [position, row] : rows) {
        if (Header().partitioning.Of(Position(position)).value != p) continue;
        absl::Status s = (*writer)->AddRow(TableId(table), Position(position), row);
        if (!s.ok()) return s;
      }
    }
  }
  for (const auto& [type, first, last, bytes] : content.sections) {
    absl::Status s = (*writer)->AddSection({type, {PartitionId(first), PartitionId(last)}, bytes});
    if (!s.ok()) return s;
  }
  for (const auto& [table, images] : content.images) {
    std::vector<Position> positions;
    std::vector<float> weights;
    for (const auto& [position, values] : images) {
      positions.push_back(Position(position));
      weights.insert(weights.end(), values.begin(), values.end());
    }
    absl::Status s = (*writer)->AddPreImages({TableId(table), positions, weights});
    if (!s.ok()) return s;
  }
  return (*writer)->Finish();
}

absl::Status Read(const std::string& path, PartitionRange partitions, Content& out) {
  auto reader = ShardFileReader::Open(path);
  if (!reader.ok()) return reader.status();
  for (const TableShape& table : (*reader)->header().tables) {
    out.rows[table.id.value];
    out.images[table.id.value];
    absl::Status s = (*reader)->ReadRows(
        table.id, partitions, [&](std::span<const Position> positions, const uint8_t* rows) {
          for (size_t i = 0; i < positions.size(); ++i) {
            const uint8_t* row = rows + i * table.row_bytes();
            out.rows[table.id.value][positions[i].value] = Bytes(row, row + table.row_bytes());
          }
          return absl::OkStatus();
        });
    if (!s.ok()) return s;
    s = (*reader)->ReadPreImages(table.id, partitions, [&](const PreImages& images) {
      for (size_t i = 0; i < images.positions.size(); ++i) {
        const auto weights = images.weights.subspan(i * table.dim, table.dim);
        out.images[table.id.value][images.positions[i].value] =
            std::vector<float>(weights.begin(), weights.end());
      }
      return absl::OkStatus();
    });
    if (!s.ok()) return s;
  }
  return (*reader)->ReadSections(partitions, [&](const Section& section) {
    out.sections.emplace_back(section.type, section.partitions.first.value,
                              section.partitions.last.value,
                              Bytes(section.bytes.begin(), section.bytes.end()));
    return absl::OkStatus();
  });
}

Bytes ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(in), {});
}

// A new file each time: some file systems flush one that is truncated and written again.
void WriteFile(const std::string& path, const Bytes& bytes) {
  std::filesystem::remove(path);
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
}

const PartitionRange kAll = {PartitionId(0), PartitionId(kPartitions - 1)};

TEST_CASE("what is written is read, with its summary", "[storage][shard_file]") {
  TempFolder folder;
  const std::string path = folder.path() + "/a.shard";
  for (size_t rows : {size_t{0}, size_t{1}, size_t{10}, size_t{20'000}}) {
    const Content content = MakeContent(rows, rows + 1);
    const auto summary = Write(path, content);
    REQUIRE(summary.ok());
    const Bytes bytes = ReadFile(path);
    CHECK(summary->bytes == bytes.size());
    CHECK(summary->crc32c == Crc32c(bytes));
    CHECK(summary->rows == 2 * rows);
    CHECK(!std::filesystem::exists(path + ".tmp"));
    HashSum hash;
    for (const TableShape& table : Header().tables) {
      for (const auto& [position, row] : content.rows.at(table.id.value)) {
        hash += HashRow(table.id, table.KeyAt(Position(position)), row);
      }
    }
    CHECK(summary->hash == hash);
    Content read;
    REQUIRE(Read(path, kAll, read).ok());
    CHECK(read == content);
    auto reader = ShardFileReader::Open(path);
    REQUIRE(reader.ok());
    CHECK((*reader)->header().clock == Step(99));
    CHECK((*reader)->header().log_segment == 5);
    CHECK((*reader)->header().tables == Header().tables);
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
  REQUIRE(Write(path, content).ok());
  for (uint32_t a = 0; a < kPartitions; a += 3) {
    for (uint32_t b = a; b < kPartitions; b += 2) {
      Content part;
      REQUIRE(Read(path, {PartitionId(a), PartitionId(b)}, part).ok());
      Content expected = content;
      const auto outside = [&](const auto& item) {
        const uint32_t p = Header().partitioning.Of(Position(item.first)).value;
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
  REQUIRE(Write(path, MakeContent(4, 8)).ok());
  const Bytes whole = ReadFile(path);
  const auto read_all = [&] {
    Content content;
    return Read(path, kAll, content);
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
  ShardFileHeader header = Header();
  header.kind = ShardFileKind::kIncrement;
  header.log_segment = 0;
  header.base = Step(98);
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
  CHECK(write(Header()).status().code() == absl::StatusCode::kInvalidArgument);
  const auto summary = write(header);
  REQUIRE(summary.ok());
  const Bytes whole = ReadFile(path);
  CHECK(summary->crc32c == Crc32c(whole));
  CHECK(summary->rows == 40);
  Content read;
  REQUIRE(Read(path, kAll, read).ok());
  CHECK(read.rows == content.rows);
  auto reader = ShardFileReader::Open(path);
  REQUIRE(reader.ok());
  CHECK((*reader)->header().kind == ShardFileKind::kIncrement);
  CHECK((*reader)->header().base == Step(98));
  for (const TableShape& table : header.tables) {
    std::vector<Position> found;
    REQUIRE((*reader)
                ->ReadErased(table.id, kAll,
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

TEST_CASE("a block of another file does not pass for one's own", "[storage][shard_file]") {
  TempFolder folder;
  const std::string path = folder.path() + "/a.shard";
  REQUIRE(Write(path, MakeContent(4, 8)).ok());
  const Bytes other = ReadFile(path);
  REQUIRE(Write(path, MakeContent(4, 9)).ok());
  Bytes mixed = ReadFile(path);
  REQUIRE(mixed.size() == other.size());
  // The same shape: blocks lie at the same offsets, and each checks by itself.
  std::copy(other.begin(), other.begin() + other.size() / 2, mixed.begin());
  WriteFile(path, mixed);
  Content content;
  CHECK(Read(path, kAll, content).code() == absl::StatusCode::kDataLoss);
}

TEST_CASE("random damage never crashes a reader", "[storage][shard_file]") {
  TempFolder folder;
  const std::string path = folder.path() + "/a.shard";
  REQUIRE(Write(path, MakeContent(6, 8)).ok());
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
    REQUIRE(Read(path, kAll, content).code() == absl::StatusCode::kDataLoss);
  }
}

TEST_CASE("wrong calls are refused and leave no file", "[storage][shard_file]") {
  TempFolder folder;
  const std::string path = folder.path() + "/a.shard";
  const Position inside = Header().partitioning.First(PartitionId(5));
  const Bytes row(32);
  const auto refused = [&](auto call) {
    auto writer = ShardFileWriter::Create(path, Header());
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
  ShardFileHeader header = Header();
  header.partitions.last = PartitionId(kPartitions);
  CHECK(ShardFileWriter::Create(path, header).status().code() ==
        absl::StatusCode::kInvalidArgument);
  CHECK(ShardFileReader::Open(path).status().code() == absl::StatusCode::kNotFound);
}

TEST_CASE("an abandoned or failed file leaves the old one in place", "[storage][shard_file]") {
  TempFolder folder;
  const std::string path = folder.path() + "/a.shard";
  const Content content = MakeContent(10, 1);
  REQUIRE(Write(path, content).ok());
  {
    auto writer = ShardFileWriter::Create(path, Header());
    REQUIRE(writer.ok());
  }
  Content read;
  REQUIRE(Read(path, kAll, read).ok());
  CHECK(read == content);
  CHECK(!std::filesystem::exists(path + ".tmp"));
}

TEST_CASE("a full disk is a clear error and leaves nothing behind", "[storage][shard_file]") {
  TempFolder folder;
  SmallDisk disk(folder.path() + "/disk", 256 << 10);
  if (!disk.mounted()) {
    WARN("skipped: " << disk.reason());
    return;
  }
  const std::string path = disk.path() + "/a.shard";
  const auto summary = Write(path, MakeContent(20'000, 1));
  CHECK(summary.status().code() == absl::StatusCode::kResourceExhausted);
  CHECK(std::string(summary.status().message()).find(path) != std::string::npos);
  CHECK(std::filesystem::is_empty(disk.path()));
  CHECK(Write(path, MakeContent(100, 1)).ok());
}

}  // namespace
}  // namespace strata::storage

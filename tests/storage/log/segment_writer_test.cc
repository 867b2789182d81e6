#include "storage/log/segment_writer.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "proto/core/ids.h"
#include "storage/io/huge_memory.h"
#include "storage/log/record.h"
#include "storage/log/update_log.h"
#include "tests/storage/io/file_bytes.h"
#include "tests/temp_folder.h"

namespace strata::storage {
namespace {

Bytes Draw(std::mt19937_64& random, size_t n) {
  Bytes bytes(n);
  for (uint8_t& b : bytes) b = static_cast<uint8_t>(random());
  return bytes;
}

TEST_CASE("both ways of writing leave the bytes that were appended", "[storage][segment]") {
  TempFolder folder;
  for (WriteMode mode : {WriteMode::kBuffered, WriteMode::kDirect}) {
    const std::string path = folder.path() + (mode == WriteMode::kDirect ? "/d" : "/b");
    auto writer = SegmentWriter::Create(path, mode);
    REQUIRE(writer.ok());
    std::mt19937_64 random(3);
    Bytes expected;
    // Shorter than a block, whole blocks, around the staging memory's size, and several of it.
    for (size_t n : {1u, 31u, 4064u, 4096u, 8192u, 5u, 100000u, (4u << 20) - 4096u, 4u << 20, 1u,
                     (5u << 20) + 17u, 0u, 3u}) {
      if (mode == WriteMode::kDirect) {
        n = (n + SegmentWriter::kBlock - 1) / SegmentWriter::kBlock * SegmentWriter::kBlock;
      }
      Bytes a = Draw(random, n / 3), b = Draw(random, n - n / 3);
      iovec parts[] = {{a.data(), a.size()}, {nullptr, 0}, {b.data(), b.size()}};
      REQUIRE(writer->Append(parts).ok());
      expected.insert(expected.end(), a.begin(), a.end());
      expected.insert(expected.end(), b.begin(), b.end());
      REQUIRE(writer->end() == expected.size());
      const bool same = ReadFile(path) == expected;  // megabytes are not for a report
      REQUIRE(same);
    }
  }
}

TEST_CASE("blocks that lie ready are written from where they are", "[storage][segment]") {
  TempFolder folder;
  auto writer = SegmentWriter::Create(folder.path() + "/d", WriteMode::kDirect);
  REQUIRE(writer.ok());
  auto memory = HugeMemory::Allocate(4 * SegmentWriter::kBlock, PageUse::kHuge);
  REQUIRE(memory.ok());
  std::mt19937_64 random(4);
  for (size_t i = 0; i < memory->size(); ++i) memory->data()[i] = static_cast<uint8_t>(random());
  const Bytes all(memory->data(), memory->data() + memory->size());
  iovec parts[] = {{memory->data(), SegmentWriter::kBlock},
                   {memory->data() + SegmentWriter::kBlock, 3 * SegmentWriter::kBlock}};
  REQUIRE(writer->Append(parts).ok());
  const bool same = ReadFile(folder.path() + "/d") == all;
  CHECK(same);
}

TEST_CASE("an existing file is not created, and a missing one not opened", "[storage][segment]") {
  TempFolder folder;
  const std::string path = folder.path() + "/f";
  REQUIRE(SegmentWriter::Create(path, WriteMode::kDirect).ok());
  CHECK_FALSE(SegmentWriter::Create(path, WriteMode::kDirect).ok());
  CHECK(SegmentWriter::Open(folder.path() + "/none", 0).status().code() ==
        absl::StatusCode::kNotFound);
}

struct Record {
  uint64_t step;
  Bytes payload;
  friend bool operator==(const Record&, const Record&) = default;
};

std::unique_ptr<UpdateLog> OpenDirect(const std::string& directory) {
  UpdateLogOptions options;
  options.directory = directory;
  options.segment_bytes = 50000;
  options.direct_from_bytes = 0;
  auto log = UpdateLog::Open(options);
  INFO(log.status());
  REQUIRE(log.ok());
  return *std::move(log);
}

std::vector<Record> ReadAll(UpdateLog& log) {
  std::vector<Record> records;
  REQUIRE(
      log.Replay(0,
                 [&](const LogRecordView& r) {
                   records.push_back({r.header.step.value, {r.payload.begin(), r.payload.end()}});
                   return absl::OkStatus();
                 })
          .ok());
  return records;
}

TEST_CASE("a log written around the page cache is replayed, over segments and reopens",
          "[storage][segment][log]") {
  TempFolder folder;
  std::mt19937_64 random(9);
  std::vector<Record> kept;
  for (int round = 0; round < 5; ++round) {
    auto log = OpenDirect(folder.path() + "/log");
    CHECK(log->stats().truncated_bytes == 0);  // padding is not damage
    CHECK(ReadAll(*log) == kept);
    for (int i = 0; i < 20; ++i) {
      kept.push_back({kept.size(), Draw(random, random() % 20000)});
      LogHeader header;
      header.step = Step(kept.back().step);
      const std::span<const uint8_t> parts[] = {kept.back().payload};
      const LogEntry entry{header, parts};
      REQUIRE(log->Append({&entry, 1}).ok());
    }
    CHECK(ReadAll(*log) == kept);
    CHECK(log->stats().last_segment > 1);
  }
}

}  // namespace
}  // namespace strata::storage

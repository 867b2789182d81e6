#include "storage/log/update_log.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "proto/core/checksum.h"
#include "proto/core/uid.h"
#include "storage/log/format.h"
#include "tests/seed.h"
#include "tests/small_disk.h"
#include "tests/storage/io/file_bytes.h"
#include "tests/storage/log/fixture.h"
#include "tests/temp_folder.h"

namespace strata::storage {
namespace {

using Kept = KeptRecord;

std::unique_ptr<UpdateLog> Open(const std::string& directory, uint64_t segment_bytes = 1 << 20) {
  return MustOpen({.directory = directory, .segment_bytes = segment_bytes});
}

std::string SegmentPath(const std::string& directory, uint64_t segment) {
  return directory + "/" + log::SegmentName(segment);
}

TEST_CASE("a log is opened by its owner alone", "[storage][log][identity]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/log";
  const LogOwner owner = {{{1, 2}, {3, 4}}, Generation(5)};
  {
    auto log = MustOpen({.directory = path, .owner = owner});
    REQUIRE(Append(*log, RecordOf(1, 100)).ok());
  }
  const LogOwner others[] = {{{{1, 9}, {3, 4}}, Generation(5)},
                             {{{1, 2}, {3, 9}}, Generation(5)},
                             {{{1, 2}, {3, 4}}, Generation(6)}};
  for (const LogOwner& other : others) {
    const absl::Status s = UpdateLog::Open({.directory = path, .owner = other}).status();
    CHECK(s.code() == absl::StatusCode::kFailedPrecondition);
    for (const LogOwner& both : {owner, other}) {
      CHECK(std::string(s.message()).find(Describe(both.identity)) != std::string::npos);
    }
  }
  auto log = MustOpen({.directory = path, .owner = owner});
  CHECK(MustReadAll(*log) == std::vector{RecordOf(1, 100)});
}

TEST_CASE("a log of an older version is refused, and stays as it is", "[storage][log][identity]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/log", segment = SegmentPath(path, 1);
  MustOpen({.directory = path}).reset();
  Bytes bytes = ReadFile(segment);
  bytes.resize(32);
  bytes[24] = 2;
  const uint32_t crc = Crc32c(std::span<const uint8_t>(bytes).first(28));
  std::memcpy(bytes.data() + 28, &crc, 4);
  WriteFile(segment, bytes);
  const absl::Status s = UpdateLog::Open({.directory = path}).status();
  CHECK(s.code() == absl::StatusCode::kUnimplemented);
  for (const std::string& part : {segment, std::string("version 2;"), std::string("version 3;")}) {
    CHECK(std::string(s.message()).find(part) != std::string::npos);
  }
  CHECK(ReadFile(segment) == bytes);
}

TEST_CASE("what is appended is replayed, in order, over segments and reopens", "[storage][log]") {
  TempFolder folder;
  std::mt19937_64 rng(5);
  std::vector<Kept> kept;
  for (int round = 0; round < 4; ++round) {
    auto log = Open(folder.path(), 5000);
    CHECK(log->stats().truncated_bytes == 0);
    CHECK(MustReadAll(*log) == kept);
    for (int i = 0; i < 50; ++i) {
      kept.push_back({HeaderOf(kept.size()), PayloadOf(kept.size(), rng() % 900)});
      REQUIRE(Append(*log, kept.back()).ok());
    }
    kept.push_back({HeaderOf(kept.size()), PayloadOf(9, 20'000)});  // larger than a segment
    REQUIRE(Append(*log, kept.back()).ok());
    CHECK(MustReadAll(*log) == kept);
    CHECK(log->stats().records == 51);
  }
  CHECK(Open(folder.path())->stats().last_segment > 10);
}

TEST_CASE("a group is appended whole, each entry a record", "[storage][log]") {
  TempFolder folder;
  auto log = Open(folder.path());
  const Bytes a = PayloadOf(1, 100), b = PayloadOf(2, 7);
  const std::span<const uint8_t> part_a[] = {a}, part_b[] = {b};
  const LogEntry entries[] = {{HeaderOf(1), part_a}, {HeaderOf(2), part_b}, {HeaderOf(3), {}}};
  REQUIRE(log->Append(entries).ok());
  CHECK(MustReadAll(*log) ==
        std::vector<Kept>{{HeaderOf(1), a}, {HeaderOf(2), b}, {HeaderOf(3), {}}});
  CHECK(log->Append(std::span<const LogEntry>()).status().code() ==
        absl::StatusCode::kInvalidArgument);
}

// Who has a sum of the payload need not look for damage itself: the log sums what it writes.
TEST_CASE("an entry that is not what it should sum up to stays out of the log", "[storage][log]") {
  for (const uint64_t direct_from : {uint64_t{1} << 40, uint64_t{0}}) {  // page cache; whole blocks
    TempFolder folder;
    auto log = MustOpen({.directory = folder.path() + "/log", .direct_from_bytes = direct_from});
    REQUIRE(Append(*log, RecordOf(1, 5000)).ok());
    REQUIRE(log->Rotate().ok());
    const Bytes first(1000, 1), second(77, 2);
    Bytes whole = first;
    whole.insert(whole.end(), second.begin(), second.end());
    const std::span<const uint8_t> parts[] = {first, second};
    LogEntry entry{RecordOf(2, 0).header, parts};
    uint32_t summed = 0;
    entry.summed = &summed;
    entry.crc32c = Crc32c(whole) + 1;
    const LogStats before = log->stats();
    const auto refused = log->Append(entry);
    INFO(refused.status());
    CHECK(absl::IsDataLoss(refused.status()));
    CHECK(log->stats().appended_bytes == before.appended_bytes);
    entry.crc32c = Crc32c(whole);
    summed = 0;
    REQUIRE(log->Append(entry).ok());
    CHECK(summed == Crc32c(whole));
    entry.crc32c = std::nullopt;
    REQUIRE(log->Append(entry).ok());
    CHECK(MustReadAll(*log).size() == 3);
  }
}

TEST_CASE("a record says what had been acknowledged when it was written", "[storage][log]") {
  for (const LogDurability durability : {LogDurability::kLogged, LogDurability::kSynced}) {
    TempFolder folder;
    auto log = MustOpen({.directory = folder.path(), .durability = durability});
    REQUIRE(Append(*log, RecordOf(1, 10)).ok());
    const LogEntry entries[] = {{HeaderOf(2), {}}, {HeaderOf(3), {}}};
    const auto first = log->Append(entries);
    REQUIRE(first.ok());
    const Bytes file = ReadFile(SegmentPath(folder.path(), 1));
    const LogPosition second{1, first->offset + log::RecordBytes(0)};
    const auto record = log::DecodeRecordHeader(second, file.data() + second.offset);
    REQUIRE(record);
    // A device writes blocks in any order; a process that dies leaves the first of them.
    CHECK(record->settled ==
          (durability == LogDurability::kSynced ? first->offset : second.offset));
  }
}

TEST_CASE("a log torn at any byte of its last record keeps the others", "[storage][log]") {
  TempFolder folder;
  std::vector<Kept> kept;
  LogPosition last;
  {
    auto log = Open(folder.path() + "/whole");
    for (uint64_t i = 0; i < 3; ++i) {
      kept.push_back({HeaderOf(i), PayloadOf(i, 50 + i)});
      auto at = Append(*log, kept.back());
      REQUIRE(at.ok());
      last = *at;
    }
  }
  const Bytes whole = ReadFile(SegmentPath(folder.path() + "/whole", 1));
  const std::string torn = folder.path() + "/torn";
  std::filesystem::create_directories(torn);
  for (uint64_t size = 0; size < whole.size(); ++size) {
    WriteFile(SegmentPath(torn, 1), Bytes(whole.begin(), whole.begin() + size));
    auto log = Open(torn);
    const std::vector<Kept> left = MustReadAll(*log);
    REQUIRE(left.size() <= 2);
    REQUIRE(std::equal(left.begin(), left.end(), kept.begin()));
    if (size >= last.offset) {
      REQUIRE(left.size() == 2);
      REQUIRE(log->stats().truncated_bytes == size - last.offset);
    }
    // It goes on from there.
    REQUIRE(Append(*log, kept[2]).ok());
    REQUIRE(MustReadAll(*log).back() == kept[2]);
  }
}

// The device may have written the second record of a group and not the first: both are torn, and no
// record of the same length in front of it brings the second one back.
TEST_CASE("what lay behind a tear never comes back", "[storage][log]") {
  TempFolder folder;
  UpdateLogOptions options;
  options.directory = folder.path();
  options.durability = LogDurability::kSynced;
  LogPosition first;
  {
    auto log = MustOpen(options);
    const Bytes payload = PayloadOf(1, 100);
    const std::span<const uint8_t> part[] = {payload};
    const LogEntry group[] = {{HeaderOf(1), part}, {HeaderOf(2), part}};
    const auto at = log->Append(group);
    REQUIRE(at.ok());
    first = *at;
  }
  const std::string path = SegmentPath(folder.path(), 1);
  Bytes bytes = ReadFile(path);
  bytes[first.offset + log::RecordBytes(100) - 20] ^= 1;
  WriteFile(path, bytes);
  const Kept next{HeaderOf(3), PayloadOf(3, 100)};
  {
    auto log = MustOpen(options);
    CHECK(MustReadAll(*log).empty());
    CHECK(log->stats().truncated_bytes > 0);
    REQUIRE(Append(*log, next).ok());
  }
  CHECK(MustReadAll(*MustOpen(options)) == std::vector<Kept>{next});
}

TEST_CASE("a flipped bit anywhere is never read as a record", "[storage][log]") {
  TempFolder folder;
  const std::string directory = folder.path() + "/log";
  std::vector<Kept> kept;
  std::vector<uint64_t> ends;
  {
    auto log = Open(directory);
    for (uint64_t i = 0; i < 3; ++i) {
      kept.push_back({HeaderOf(i), PayloadOf(i, 21)});
      auto at = Append(*log, kept.back());
      REQUIRE(at.ok());
      ends.push_back(at->offset + log::RecordBytes(21));
    }
  }
  const std::string path = SegmentPath(directory, 1);
  const Bytes whole = ReadFile(path);
  REQUIRE(whole.size() == ends[2]);
  for (size_t i = 0; i < whole.size(); ++i) {
    Bytes bad = whole;
    bad[i] ^= static_cast<uint8_t>(1 << (i % 8));
    WriteFile(path, bad);
    auto log = UpdateLog::Open({.directory = directory});
    if (i < ends[1]) {  // a record behind it is intact: no torn tail
      REQUIRE(log.status().code() == absl::StatusCode::kDataLoss);
      REQUIRE(std::string(log.status().message()).find(path) == 0);
    } else {
      REQUIRE(log.ok());
      REQUIRE(MustReadAll(**log) == std::vector<Kept>(kept.begin(), kept.begin() + 2));
    }
  }
}

TEST_CASE("damage and loss in old segments are data loss, with file and offset", "[storage][log]") {
  TempFolder folder;
  const std::string directory = folder.path() + "/log";
  {
    auto log = Open(directory, 300);
    for (uint64_t i = 0; i < 9; ++i) {
      REQUIRE(Append(*log, {HeaderOf(i), PayloadOf(i, 40)}).ok());
    }
    REQUIRE(log->stats().last_segment >= 4);
  }
  const std::string path = SegmentPath(directory, 2);
  const Bytes whole = ReadFile(path);
  const auto outcome = [&] {
    auto log = UpdateLog::Open({.directory = directory});
    if (!log.ok()) return log.status();
    std::vector<Kept> out;
    return ReadAll(**log, 0, out);
  };
  REQUIRE(outcome().ok());
  for (size_t i = 0; i < whole.size(); i += 3) {
    Bytes bad = whole;
    bad[i] ^= 0x10;
    WriteFile(path, bad);
    const absl::Status s = outcome();
    REQUIRE(s.code() == absl::StatusCode::kDataLoss);
    REQUIRE(std::string(s.message()).find(path + ", offset ") == 0);
    // Cut off, at a record's end too.
    WriteFile(path, Bytes(whole.begin(), whole.begin() + i));
    REQUIRE(outcome().code() == absl::StatusCode::kDataLoss);
  }
  std::filesystem::remove(path);
  CHECK(outcome().code() == absl::StatusCode::kDataLoss);
  WriteFile(path, whole);
  CHECK(outcome().ok());
}

TEST_CASE("random bytes behind a log or instead of it never crash it", "[storage][log][seeds]") {
  const uint64_t seed = GENERATE(from_range(Seeds("log_random_bytes", 77)));
  CAPTURE(seed);
  TempFolder folder;
  std::mt19937_64 rng(seed);
  const std::string directory = folder.path() + "/log";
  Bytes whole;
  {
    auto log = Open(directory);
    for (uint64_t i = 0; i < 4; ++i) {
      REQUIRE(Append(*log, {HeaderOf(i), PayloadOf(i, 60)}).ok());
    }
  }
  whole = ReadFile(SegmentPath(directory, 1));
  for (int round = 0; round < 3000; ++round) {
    Bytes bad = whole;
    bad.resize(rng() % (2 * whole.size()));
    const size_t changes = rng() % 20;
    for (size_t i = 0; i < changes && !bad.empty(); ++i) {
      bad[rng() % bad.size()] = static_cast<uint8_t>(rng());
    }
    WriteFile(SegmentPath(directory, 1), bad);
    auto log = UpdateLog::Open({.directory = directory});
    if (!log.ok()) {
      REQUIRE(log.status().code() == absl::StatusCode::kDataLoss);
      continue;
    }
    for (const Kept& kept : MustReadAll(**log)) {
      const uint64_t n = kept.header.step.value;
      REQUIRE(n < 4);
      REQUIRE(kept == Kept{HeaderOf(n), PayloadOf(n, 60)});
    }
  }
}

TEST_CASE("a log is one process's own", "[storage][log]") {
  TempFolder folder;
  auto log = Open(folder.path());
  auto second = UpdateLog::Open({.directory = folder.path()});
  CHECK(second.status().code() == absl::StatusCode::kFailedPrecondition);
  log.reset();
  CHECK(UpdateLog::Open({.directory = folder.path()}).ok());
}

TEST_CASE("rotate and trim bound the log", "[storage][log]") {
  TempFolder folder;
  auto log = Open(folder.path());
  CHECK(log->Rotate().value() == 1);  // nothing in it yet
  REQUIRE(Append(*log, {HeaderOf(0), PayloadOf(0, 10)}).ok());
  CHECK(log->Rotate().value() == 2);
  CHECK(log->Rotate().value() == 2);
  REQUIRE(Append(*log, {HeaderOf(1), PayloadOf(1, 10)}).ok());
  CHECK(MustReadAll(*log, 2).size() == 1);
  REQUIRE(log->Trim(2).ok());
  CHECK(log->stats().first_segment == 2);
  CHECK(!std::filesystem::exists(SegmentPath(folder.path(), 1)));
  std::vector<Kept> out;
  CHECK(ReadAll(*log, 1, out).code() == absl::StatusCode::kOutOfRange);
  REQUIRE(log->Trim(100).ok());  // never the current one
  CHECK(MustReadAll(*log).size() == 1);
  log.reset();
  log = Open(folder.path());
  CHECK(log->stats().first_segment == 2);
  CHECK(MustReadAll(*log).size() == 1);
}

TEST_CASE("producers on several threads each find their records, in their order",
          "[storage][log]") {
  TempFolder folder;
  auto log = Open(folder.path(), 20'000);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&log, t] {
      for (uint64_t i = 0; i < 300; ++i) {
        LogHeader header = HeaderOf(i);
        header.shard = ShardId(t);
        (void)Append(*log, {header, PayloadOf(i + t, 30 + t)});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<uint64_t> next(4, 0);
  bool right = true;
  for (const Kept& kept : MustReadAll(*log)) {
    const uint32_t t = kept.header.shard.value;
    right &= kept.header.step.value == next[t];
    right &= kept.payload == PayloadOf(next[t]++ + t, 30 + t);
  }
  CHECK(right);
  CHECK(next == std::vector<uint64_t>(4, 300));
}

TEST_CASE("a visitor's error stops the replay", "[storage][log]") {
  TempFolder folder;
  auto log = Open(folder.path());
  for (uint64_t i = 0; i < 3; ++i) REQUIRE(Append(*log, {HeaderOf(i), {}}).ok());
  int visits = 0;
  const absl::Status s = log->Replay(0, [&](const LogRecordView&) {
    ++visits;
    return absl::CancelledError("enough");
  });
  CHECK(s.code() == absl::StatusCode::kCancelled);
  CHECK(visits == 1);
}

TEST_CASE("a log that is removed under its user takes nothing more, and says so",
          "[storage][log]") {
  // An append may fit into the open segment, or need a new one.
  for (const uint64_t segment_bytes : {200'000, 40'000}) {
    TempFolder folder;
    const std::string path = folder.path() + "/log";
    auto log = Open(path, segment_bytes);
    REQUIRE(Append(*log, {HeaderOf(0), PayloadOf(0, 30'000)}).ok());
    REQUIRE(Append(*log, {HeaderOf(1), PayloadOf(1, 30'000)}).ok());
    std::filesystem::remove_all(path);
    for (uint64_t again = 0; again < 2; ++again) {
      const absl::Status s = Append(*log, {HeaderOf(2 + again), PayloadOf(2, 30'000)}).status();
      INFO(s);
      CHECK(absl::IsNotFound(s));
      CHECK(std::string(s.message()).find(path) != std::string::npos);
    }
    CHECK(log->stats().records == 2);
  }
}

TEST_CASE("a full disk fails an append, and nothing else", "[storage][log]") {
  TempFolder folder;
  SmallDisk disk(folder.path() + "/disk", 1 << 20);
  if (!disk.mounted()) {
    WARN("skipped: " << disk.reason());
    return;
  }
  auto log = Open(disk.path() + "/log", 200'000);
  std::vector<Kept> kept;
  absl::Status failed;
  while (failed.ok()) {
    const Kept next{HeaderOf(kept.size()), PayloadOf(kept.size(), 30'000)};
    failed = Append(*log, next).status();
    if (failed.ok()) kept.push_back(next);
    REQUIRE(kept.size() < 100);
  }
  CHECK(failed.code() == absl::StatusCode::kResourceExhausted);
  CHECK(MustReadAll(*log) == kept);
  // A small record may still fit; after room is made a big one does.
  REQUIRE(log->Trim(log->stats().first_segment + 1).ok());
  const std::vector<Kept> left = MustReadAll(*log);
  REQUIRE(left.size() < kept.size());
  REQUIRE(Append(*log, {HeaderOf(500), PayloadOf(1, 30'000)}).ok());
  CHECK(MustReadAll(*log).size() == left.size() + 1);
  log.reset();
  CHECK(MustReadAll(*Open(disk.path() + "/log")).size() == left.size() + 1);
}

}  // namespace
}  // namespace strata::storage

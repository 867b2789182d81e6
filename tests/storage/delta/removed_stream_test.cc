#include "storage/delta/removed_stream.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "proto/core/position.h"
#include "tests/seed.h"
#include "tests/storage/io/scripted_files.h"
#include "tests/temp_folder.h"

namespace strata::storage {
namespace {

using Commits = std::map<uint64_t, std::map<uint32_t, std::vector<uint64_t>>>;  // step, table: keys

std::vector<DeltaTable> Tables() {
  return {{TableId(0), TableKind::kHashed, 5, 5}, {TableId(3), TableKind::kHashed, 1, 0}};
}

RemovedWriter::Options OptionsFor(const std::string& folder, uint32_t shard = 0) {
  return {folder, {Generation(1), Step(0), ShardId(shard)}, Tables(), nullptr};
}

// Ascending by position.
std::map<uint32_t, std::vector<Position>> RemovalsOf(uint64_t seed, uint64_t step, size_t most) {
  std::mt19937_64 random(seed * 1000003 + step);
  std::map<uint32_t, std::vector<Position>> removals;
  for (const DeltaTable& t : Tables()) {
    std::vector<Position> positions(random() % 3 == 0 ? 0 : random() % (most + 1));
    for (Position& p : positions) p = Position(random());
    std::sort(positions.begin(), positions.end());
    if (!positions.empty()) removals[t.id.value] = positions;
  }
  return removals;
}

void Note(const std::map<uint32_t, std::vector<Position>>& removals, uint64_t step, Commits& all) {
  for (const auto& [table, positions] : removals) {
    for (const Position p : positions) {
      all[step][table].push_back(KeyOf(p, TableSalt(TableId(table))).value);
    }
  }
}

// Tries again whatever fails; returns how often something did.
size_t Commit(RemovedWriter& writer, const std::map<uint32_t, std::vector<Position>>& removals,
              uint64_t step) {
  size_t failures = 0;
  const auto until_done = [&](const auto& work) {
    for (absl::Status s = work(); !s.ok(); s = work()) {
      INFO(s);
      REQUIRE((absl::IsResourceExhausted(s) || absl::IsUnavailable(s)));
      REQUIRE(++failures < 1000);
    }
  };
  for (const auto& [table, positions] : removals) {
    const std::span<const Position> all(positions);
    for (size_t at = 0; at < all.size(); at += RemovedWriter::kMostAdd) {
      const size_t n = std::min(RemovedWriter::kMostAdd, all.size() - at);
      until_done([&, t = table] { return writer.MakeRoom(TableId(t), step - 1, step); });
      writer.Add(TableId(table), all.subspan(at, n));
    }
  }
  until_done([&] { return writer.EndCommit(); });
  return failures;
}

Commits Read(const std::string& folder) {
  Commits all;
  const absl::Status s = ReadRemoved(folder, [&](const RemovedKeys& removed) {
    std::vector<uint64_t>& keys = all[removed.step][removed.table.value];
    keys.insert(keys.end(), removed.keys.begin(), removed.keys.end());
    return absl::OkStatus();
  });
  INFO(s);
  REQUIRE(s.ok());
  return all;
}

std::string Bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST_CASE("every commit's removals are read once, whatever is written again", "[removed_stream]") {
  for (const size_t most : {3u, 90000u}) {  // a block holds 32768 keys
    TempFolder folder;
    Commits expected;
    std::vector<uint64_t> bytes_after = {0};
    constexpr uint64_t kSteps = 12;
    {
      RemovedWriter writer(OptionsFor(folder.path()));
      REQUIRE(writer.StartNew().ok());
      for (uint64_t step = 1; step <= kSteps; ++step) {
        const auto removals = RemovalsOf(most, step, most);
        Note(removals, step, expected);
        Commit(writer, removals, step);
        bytes_after.push_back(writer.bytes());
      }
      REQUIRE(writer.Sync().ok());
      CHECK(Read(folder.path()) == expected);
    }
    const std::string whole = Bytes(folder.path() + "/removed-00001-000000000000-00000.strata");
    REQUIRE(whole.size() == bytes_after.back());
    for (const uint64_t image : {uint64_t{0}, uint64_t{5}, kSteps}) {
      RemovedWriter writer(OptionsFor(folder.path()));
      REQUIRE(writer.StartAt(bytes_after[image]).ok());
      // What comes later is gone before replay writes it again.
      Commits before = expected;
      before.erase(before.upper_bound(image), before.end());
      REQUIRE(Read(folder.path()) == before);
      for (uint64_t step = image + 1; step <= kSteps; ++step) {
        Commit(writer, RemovalsOf(most, step, most), step);
      }
      CHECK(Bytes(writer.path()) == whole);
    }
    // Cut off anywhere, the commits before count and no other.
    const std::string path = folder.path() + "/removed-00001-000000000000-00000.strata";
    for (const uint64_t step : {uint64_t{4}, kSteps}) {
      for (uint64_t cut = bytes_after[step] - 1; cut + 300 > bytes_after[step]; cut -= 7) {
        if (cut < bytes_after[step - 1]) break;
        std::filesystem::resize_file(path, cut);
        Commits before = expected;
        before.erase(before.lower_bound(step), before.end());
        REQUIRE(Read(folder.path()) == before);
      }
      std::ofstream(path, std::ios::binary) << whole;
    }
    if (most > 3) continue;
    // No flipped bit passes for a removal, or for the end of the file.
    for (size_t at = 0; at < whole.size(); ++at) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << at % 8));
      std::ofstream(path, std::ios::binary) << damaged;
      const absl::Status s =
          ReadRemoved(folder.path(), [](const RemovedKeys&) { return absl::OkStatus(); });
      INFO("byte " << at);
      REQUIRE(absl::IsDataLoss(s));
    }
  }
}

TEST_CASE("a file of many tables may be cut off anywhere", "[removed_stream]") {
  for (const uint32_t tables : {5u, 1025u}) {
    TempFolder folder;
    RemovedWriter::Options options = OptionsFor(folder.path());
    options.tables.clear();
    for (uint32_t t = 0; t < tables; ++t) {
      options.tables.push_back({TableId(t), TableKind::kHashed, 1 + t % 7, t % 3});
    }
    RemovedWriter writer(options);
    REQUIRE(writer.StartNew().ok());
    std::vector<uint64_t> ends = {0};
    Commits expected;
    for (uint64_t step = 1; step <= 2; ++step) {
      const std::map<uint32_t, std::vector<Position>> removals = {
          {0, {Position(step), Position(step + 10)}}, {tables - 1, {Position(3)}}};
      Note(removals, step, expected);
      Commit(writer, removals, step);
      ends.push_back(writer.bytes());
    }
    const std::string whole = Bytes(writer.path());
    REQUIRE(whole.size() == ends.back());
    REQUIRE(Read(folder.path()) == expected);
    for (uint64_t cut = whole.size(); cut-- > 0;) {
      if (tables > 5 && cut > 200 && cut % 41 != 0) continue;  // for the time that it takes
      std::filesystem::resize_file(writer.path(), cut);
      Commits before = expected;
      for (uint64_t step = 1; step <= 2; ++step) {
        if (cut < ends[step]) before.erase(step);
      }
      INFO(tables << " tables, cut at " << cut);
      REQUIRE(Read(folder.path()) == before);
    }
    // A number of tables that is damaged is no cut.
    const std::string number = {'\x01', '\x04'};  // 1025, which a header may have
    for (std::string damaged : {whole, whole.substr(0, 88 + 16 * tables + 40)}) {
      if (tables == 1025) continue;
      damaged.replace(64, 2, number);
      std::ofstream(writer.path(), std::ios::binary) << damaged;
      const auto s =
          ReadRemoved(folder.path(), [](const RemovedKeys&) { return absl::OkStatus(); });
      CHECK(s.code() == absl::StatusCode::kDataLoss);
    }
  }
}

TEST_CASE("where a later generation starts, what was removed after no longer counts",
          "[removed_stream]") {
  TempFolder folder;
  const auto run = [&](uint64_t generation, uint64_t from, uint64_t to, uint32_t shard) {
    RemovedWriter::Options options = OptionsFor(folder.path(), shard);
    options.name.generation = Generation(generation);
    options.name.from = Step(from);
    RemovedWriter writer(options);
    if (absl::Status s = writer.StartNew(); !s.ok()) return s;
    for (uint64_t step = from + 1; step <= to; ++step) {
      Commit(writer, {{0, {Position(generation * 100 + shard), Position(step * 1000)}}}, step);
    }
    return absl::OkStatus();
  };
  const auto read = [&] {
    std::vector<std::pair<uint64_t, uint64_t>> all;  // generation and shard, step
    REQUIRE(ReadRemoved(folder.path(), [&](const RemovedKeys& r) {
              all.emplace_back(r.run.generation.value * 10 + r.run.shard.value, r.step);
              return absl::OkStatus();
            }).ok());
    return all;
  };
  CHECK(read().empty());
  REQUIRE(run(1, 0, 4, 0).ok());
  REQUIRE(run(1, 0, 3, 1).ok());
  REQUIRE(run(2, 3, 5, 1).ok());
  REQUIRE(run(3, 2, 3, 0).ok());  // goes back behind the second's start
  CHECK(read() ==
        std::vector<std::pair<uint64_t, uint64_t>>{{10, 1}, {10, 2}, {11, 1}, {11, 2}, {30, 3}});
  // A run that goes on in a process of its own begins with generation 1 again.
  CHECK(absl::IsFailedPrecondition(run(1, 3, 4, 0)));
  CHECK(absl::IsFailedPrecondition(run(1, 0, 4, 1)));
  CHECK(absl::IsFailedPrecondition(run(3, 2, 4, 0)));
  REQUIRE(run(3, 2, 3, 2).ok());  // another shard of the same run
  REQUIRE(run(3, 3, 4, 0).ok());
  CHECK(read().back() == std::pair<uint64_t, uint64_t>{30, 4});
}

TEST_CASE("a file that is shorter than it was is refused, one that is gone starts anew",
          "[removed_stream]") {
  TempFolder folder;
  RemovedWriter writer(OptionsFor(folder.path()));
  REQUIRE(writer.StartNew().ok());
  Commit(writer, {{0, {Position(1)}}}, 1);
  const uint64_t bytes = writer.bytes();
  std::filesystem::resize_file(writer.path(), bytes - 1);
  const absl::Status shorter = RemovedWriter(OptionsFor(folder.path())).StartAt(bytes);
  CHECK(absl::IsFailedPrecondition(shorter));
  CHECK(shorter.message().find(writer.path()) != std::string::npos);
  std::filesystem::remove(writer.path());
  RemovedWriter other(OptionsFor(folder.path()));
  REQUIRE(other.StartAt(bytes).ok());
  Commit(other, {{0, {Position(2)}}}, 2);
  CHECK(Read(folder.path()).size() == 1);
}

TEST_CASE("a full or failing disk makes commits wait and writes nothing twice",
          "[removed_stream][seeds]") {
  const uint64_t seed = GENERATE(from_range(Seeds("removed_disk", 5)));
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  size_t failures = 0;
  TempFolder calm_folder, folder;
  ScriptedFiles files(1);
  RemovedWriter::Options options = OptionsFor(folder.path());
  options.files = &files;
  RemovedWriter writer(options), calm(OptionsFor(calm_folder.path()));
  REQUIRE(writer.StartNew().ok());
  REQUIRE(calm.StartNew().ok());
  for (uint64_t step = 1; step <= 60; ++step) {
    const auto removals = RemovalsOf(2, step, step % 20 == 0 ? 90000 : 30);
    const int error = random() % 2 == 0 ? ENOSPC : EIO;
    files.Fail(ScriptedFiles::Call::kWrite, error, 1 + random() % 4, 1 + random() % 3);
    if (random() % 2 == 0) files.ShortWrite(random() % 100);
    failures += Commit(writer, removals, step);
    Commit(calm, removals, step);
    REQUIRE(writer.bytes() == calm.bytes());
  }
  if (!SeedsAreGiven()) CHECK(failures > 20);
  CHECK(Bytes(writer.path()) == Bytes(calm.path()));
}

TEST_CASE("what was synced survives a power failure, with its file's name",
          "[removed_stream][seeds]") {
  for (const uint64_t seed : Seeds("removed_power", 1, 12)) {
    INFO("seed " << seed);
    TempFolder folder;
    ScriptedFiles files(seed);
    RemovedWriter::Options options = OptionsFor(folder.path() + "/gone");
    options.files = &files;
    RemovedWriter writer(options);
    REQUIRE(writer.StartNew().ok());
    REQUIRE(writer.Sync().ok());  // nothing yet: this says nothing of what comes
    Commits synced;
    const uint64_t steps = 1 + seed % 3;
    for (uint64_t step = 1; step <= steps; ++step) {
      Commit(writer, {{0, {Position(step), Position(step << 40)}}}, step);
      Note({{0, {Position(step), Position(step << 40)}}}, step, synced);
      if (step % 2 == 0) REQUIRE(writer.Sync().ok());
    }
    REQUIRE(writer.Sync().ok());
    const uint64_t bytes = writer.bytes();
    Commit(writer, {{0, {Position(7)}}}, steps + 1);
    const std::string after = folder.path() + "/after";
    std::filesystem::create_directory(after);
    files.PowerLoss(folder.path() + "/gone", after);
    RemovedWriter again(OptionsFor(after));
    const absl::Status s = again.StartAt(bytes);
    INFO(s);
    REQUIRE(s.ok());
    CHECK(Read(after) == synced);
  }
}

TEST_CASE("a sync that failed is never taken for one that worked", "[removed_stream]") {
  TempFolder folder;
  ScriptedFiles files(1);
  RemovedWriter::Options options = OptionsFor(folder.path());
  options.files = &files;
  RemovedWriter writer(options);
  REQUIRE(writer.StartNew().ok());
  REQUIRE(writer.Sync().ok());
  Commit(writer, {{0, {Position(1)}}}, 1);
  files.Fail(ScriptedFiles::Call::kSync, EIO);
  CHECK_FALSE(writer.Sync().ok());
  CHECK_FALSE(writer.Sync().ok());
  // The file itself goes on; a restart writes again what its image does not stand for.
  Commit(writer, {{0, {Position(2)}}}, 2);
  CHECK(Read(folder.path()).size() == 2);
}

TEST_CASE("without a free file handle nothing is lost, and one that is free is used",
          "[removed_stream]") {
  for (const bool is_new : {true, false}) {
    TempFolder folder;
    ScriptedFiles files(1);
    RemovedWriter::Options options = OptionsFor(folder.path());
    options.files = &files;
    RemovedWriter writer(options);
    const auto start = [&] { return is_new ? writer.StartNew() : writer.StartAt(0); };
    files.Fail(ScriptedFiles::Call::kOpen, EMFILE);
    const absl::Status failed = start();
    INFO(failed);
    CHECK(absl::IsResourceExhausted(failed));
    CHECK(failed.message().find(writer.path()) != std::string::npos);
    CHECK(failed.message().find("raise the limit of open files") != std::string::npos);
    CHECK(ListRemoved(folder.path())->empty());
    REQUIRE(start().ok());
    Commit(writer, {{0, {Position(1)}}}, 1);
    // The folder's handle: its sync has not failed, it was not tried.
    files.Fail(ScriptedFiles::Call::kOpen, EMFILE, 1, 2);
    for (int i = 0; i < 2; ++i) CHECK(absl::IsResourceExhausted(writer.Sync()));
    REQUIRE(writer.Sync().ok());
    const std::string after = folder.path() + "/after";
    std::filesystem::create_directory(after);
    files.PowerLoss(folder.path(), after);
    CHECK(Read(after).size() == 1);
  }
}

TEST_CASE("what cannot be cut off keeps a stream from starting until it can", "[removed_stream]") {
  TempFolder folder;
  ScriptedFiles files(1);
  RemovedWriter::Options options = OptionsFor(folder.path());
  options.files = &files;
  uint64_t bytes = 0;
  {
    RemovedWriter writer(options);
    REQUIRE(writer.StartNew().ok());
    Commit(writer, {{0, {Position(1)}}}, 1);
    bytes = writer.bytes();
    Commit(writer, {{0, {Position(2)}}}, 2);
  }
  RemovedWriter writer(options);
  files.Fail(ScriptedFiles::Call::kTruncate, EIO);
  CHECK(absl::IsUnavailable(writer.StartAt(bytes)));
  REQUIRE(writer.StartAt(bytes).ok());
  Commit(writer, {{0, {Position(3)}}}, 2);
  CHECK(Read(folder.path()).size() == 2);
}

}  // namespace
}  // namespace strata::storage

// What the update log does when the disk does not do what it should.
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "storage/log/update_log.h"
#include "tests/seed.h"
#include "tests/skip.h"
#include "tests/storage/io/scripted_files.h"
#include "tests/storage/log/fixture.h"
#include "tests/temp_folder.h"

namespace strata::storage {
namespace {

using Call = ScriptedFiles::Call;

UpdateLogOptions On(const std::string& directory, FileSystem& files, LogDurability durability) {
  UpdateLogOptions options;
  options.directory = directory;
  options.durability = durability;
  options.segment_bytes = 4000;
  options.files = &files;
  return options;
}

// A log of 4 records: the fifth needs a new segment.
std::vector<KeptRecord> FillSegment(UpdateLog& log) {
  std::vector<KeptRecord> kept;
  while (log.stats().bytes < 4000) {
    kept.push_back(RecordOf(kept.size(), 900));
    REQUIRE(Append(log, kept.back()).ok());
  }
  return kept;
}

TEST_CASE("an append that fails leaves nothing, and the next one goes through", "[storage][log]") {
  struct Case {
    Call call;
    int error;
    uint64_t nth;  // the first call of this kind is that of a new segment's header
    absl::StatusCode code;
  };
  const Case cases[] = {{Call::kWrite, EIO, 1, absl::StatusCode::kUnavailable},
                        {Call::kWrite, EIO, 2, absl::StatusCode::kUnavailable},
                        {Call::kWrite, ENOSPC, 1, absl::StatusCode::kResourceExhausted},
                        {Call::kWrite, ENOSPC, 2, absl::StatusCode::kResourceExhausted},
                        {Call::kOpen, EMFILE, 1, absl::StatusCode::kResourceExhausted},
                        {Call::kOpen, ENOSPC, 1, absl::StatusCode::kResourceExhausted}};
  for (const LogDurability durability : {LogDurability::kLogged, LogDurability::kSynced}) {
    for (const Case& c : cases) {
      CAPTURE(c.call, c.error, c.nth);
      TempFolder folder;
      ScriptedFiles files(1);
      auto log = MustOpen(On(folder.path() + "/log", files, durability));
      std::vector<KeptRecord> kept = FillSegment(*log);
      files.Fail(c.call, c.error, c.nth);
      const absl::Status failed = Append(*log, RecordOf(kept.size(), 500)).status();
      CHECK(failed.code() == c.code);
      CHECK(std::string(failed.message()).find(folder.path()) != std::string::npos);
      CHECK(MustReadAll(*log) == kept);
      kept.push_back(RecordOf(kept.size(), 300));
      REQUIRE(Append(*log, kept.back()).ok());
      CHECK(MustReadAll(*log) == kept);
      log.reset();
      CHECK(MustReadAll(*MustOpen(On(folder.path() + "/log", files, durability))) == kept);
    }
  }
}

TEST_CASE("a write that takes a part only is gone on with, or cut off", "[storage][log]") {
  TempFolder folder;
  ScriptedFiles files(1);
  auto log = MustOpen(On(folder.path() + "/log", files, LogDurability::kLogged));
  std::vector<KeptRecord> kept;
  for (const size_t bytes : {1u, 127u, 128u, 300u}) {
    files.ShortWrite(bytes);
    kept.push_back(RecordOf(kept.size(), 500));
    REQUIRE(Append(*log, kept.back()).ok());
  }
  CHECK(MustReadAll(*log) == kept);
  // Half of a record, then nothing, and it cannot even be cut off.
  files.ShortWrite(200);
  files.Fail(Call::kWrite, EIO, 2);
  files.Fail(Call::kTruncate, EIO, 1, 2);
  CHECK(Append(*log, RecordOf(50, 500)).status().code() == absl::StatusCode::kUnavailable);
  CHECK(Append(*log, RecordOf(51, 500)).status().code() == absl::StatusCode::kUnavailable);
  CHECK(MustReadAll(*log) == kept);
  kept.push_back(RecordOf(52, 10));
  REQUIRE(Append(*log, kept.back()).ok());
  CHECK(MustReadAll(*log) == kept);
}

TEST_CASE("a disk that cannot be read is an error with the file's name", "[storage][log]") {
  TempFolder folder;
  ScriptedFiles files(1);
  const auto options = On(folder.path() + "/log", files, LogDurability::kLogged);
  auto log = MustOpen(options);
  const std::vector<KeptRecord> kept = FillSegment(*log);
  files.Fail(Call::kRead, EIO);
  std::vector<KeptRecord> out;
  const absl::Status s = ReadAll(*log, 0, out);
  CHECK(s.code() == absl::StatusCode::kUnavailable);
  CHECK(std::string(s.message()).find("00000000000000000001.log") != std::string::npos);
  CHECK(MustReadAll(*log) == kept);
  log.reset();
  files.Fail(Call::kRead, EIO);
  CHECK(UpdateLog::Open(options).status().code() == absl::StatusCode::kUnavailable);
  CHECK(MustReadAll(*MustOpen(options)) == kept);
}

TEST_CASE("a segment whose sync failed is given up, and nothing is said twice", "[storage][log]") {
  TempFolder folder;
  ScriptedFiles files(1);
  const auto options = On(folder.path() + "/log", files, LogDurability::kSynced);
  auto log = MustOpen(options);
  std::vector<KeptRecord> kept = {RecordOf(0, 100), RecordOf(1, 100)};
  for (const KeptRecord& r : kept) REQUIRE(Append(*log, r).ok());
  files.Fail(Call::kSync, EIO);
  kept.push_back(RecordOf(2, 100));
  REQUIRE(Append(*log, kept.back()).ok());  // in segment 2: what the sync was about is not known
  CHECK(log->stats().last_segment == 2);
  CHECK(log->stats().given_up == 1);
  CHECK(MustReadAll(*log) == kept);
  SECTION("and where the new one cannot be synced either, the append fails") {
    files.Fail(Call::kSync, EIO, 1, 2);  // the records of segment 2, the header of segment 3
    const absl::Status failed = Append(*log, RecordOf(77, 100)).status();
    CHECK(failed.code() == absl::StatusCode::kUnavailable);
    CHECK(std::string(failed.message()).find("cannot sync") == 0);
    CHECK(MustReadAll(*log) == kept);
    const uint64_t syncs = files.calls(Call::kSync);
    kept.push_back(RecordOf(3, 50));
    REQUIRE(Append(*log, kept.back()).ok());
    CHECK(files.calls(Call::kSync) == syncs + 3);  // header, folder, record: never segment 2 again
    CHECK(log->stats().last_segment == 3);
  }
  CHECK(MustReadAll(*log) == kept);
  log.reset();
  CHECK(MustReadAll(*MustOpen(options)) == kept);
}

TEST_CASE("an opening whose sync fails fails, and the next one reads what the disk has",
          "[storage][log]") {
  TempFolder folder;
  ScriptedFiles files(1);
  const auto options = On(folder.path() + "/log", files, LogDurability::kSynced);
  const KeptRecord only = RecordOf(0, 100);
  REQUIRE(Append(*MustOpen(options), only).ok());
  files.Fail(Call::kSync, EIO);
  CHECK(UpdateLog::Open(options).status().code() == absl::StatusCode::kUnavailable);
  CHECK(MustReadAll(*MustOpen(options)) == std::vector<KeptRecord>{only});
}

TEST_CASE("what an opening at synced finds survives a power failure from then on",
          "[storage][log][seeds]") {
  for (const uint64_t seed : Seeds("log_opening", 0, 10)) {
    CAPTURE(seed);
    TempFolder folder;
    ScriptedFiles files(seed);
    const std::string directory = folder.path() + "/log", after = folder.path() + "/after";
    std::vector<KeptRecord> kept;
    {
      // What a process of level logged left to the operating system.
      auto log = MustOpen(On(directory, files, LogDurability::kLogged));
      for (uint64_t i = 0; i <= seed % 10; ++i) {
        kept.push_back(RecordOf(i, 260));  // ten fit into a segment
        REQUIRE(Append(*log, kept.back()).ok());
      }
    }
    auto log = MustOpen(On(directory, files, LogDurability::kSynced));
    REQUIRE(MustReadAll(*log) == kept);
    std::filesystem::create_directories(after);
    files.PowerLoss(directory, after);
    CHECK(MustReadAll(*MustOpen(On(after, FileSystem::Kernel(), LogDurability::kSynced))) == kept);
  }
}

struct Acknowledged {
  std::vector<std::vector<KeptRecord>> tried;
  std::vector<bool> ok;
};

void AppendGroup(UpdateLog& log, size_t records, size_t most_bytes, std::mt19937_64& random,
                 uint64_t& next, Acknowledged& out) {
  std::vector<KeptRecord> group;
  for (size_t i = 0; i < records; ++i) group.push_back(RecordOf(next++, random() % most_bytes));
  std::vector<std::span<const uint8_t>> payloads;
  for (const KeptRecord& r : group) payloads.push_back(r.payload);
  std::vector<LogEntry> entries;
  for (size_t i = 0; i < group.size(); ++i) {
    entries.push_back({group[i].header, {&payloads[i], 1}});
  }
  out.ok.push_back(log.Append(entries).ok());
  out.tried.push_back(std::move(group));
}

// Appends groups while calls fail at random, until the power fails; where it does so between a
// write and its sync, the last group's records are there in pieces.
void AppendAtRandom(UpdateLog& log, ScriptedFiles& files, std::mt19937_64& random, uint64_t& next,
                    Acknowledged& out) {
  const uint64_t groups = random() % 30;
  for (uint64_t g = 0; g < groups; ++g) {
    if (random() % 5 == 0) files.Fail(Call::kSync, EIO, 1 + random() % 3, 1 + random() % 2);
    if (random() % 9 == 0) files.Fail(Call::kWrite, EIO, 1 + random() % 2);
    if (random() % 9 == 0) files.ShortWrite(random() % 700);
    if (random() % 15 == 0) files.Fail(Call::kTruncate, EIO);
    AppendGroup(log, 1 + random() % 3, 2500, random, next, out);
  }
  if (random() % 2 == 0) return;
  files.Fail(Call::kSync, EIO, 1, 1000);
  files.Fail(Call::kTruncate, EIO, 1, 1000);
  AppendGroup(log, 5, 600, random, next, out);
}

// Records of acknowledged groups all there, in order, once; of a group that failed, any first part
// may be there, in its place.
bool Explains(const Acknowledged& said, const std::vector<KeptRecord>& found) {
  size_t at = 0;
  for (size_t g = 0; g < said.tried.size(); ++g) {
    for (const KeptRecord& record : said.tried[g]) {
      const bool there = at < found.size() && found[at] == record;
      if (!there && said.ok[g]) return false;
      if (!there) break;
      ++at;
    }
  }
  return at == found.size();
}

TEST_CASE("what was acknowledged at synced survives failures of disk and power",
          "[storage][log][seeds]") {
  const uint64_t seed = GENERATE(from_range(Seeds("log_outages")));
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (int life = 0; life < (SeedsAreGiven() ? 6 : LongRun() ? 2000 : 60); ++life) {
    TempFolder folder;
    std::string directory = folder.path() + "/0";
    Acknowledged said;
    uint64_t next = 0;
    for (int outage = 1; outage <= 4; ++outage) {
      ScriptedFiles files(random());
      auto options = On(directory, files, LogDurability::kSynced);
      options.segment_bytes = 30'000;
      options.direct_from_bytes = random() % 2 == 0 ? 0 : uint64_t{1} << 30;
      // The folder was synced by who made it; the segments that are there, by Open.
      auto log = UpdateLog::Open(options);
      CAPTURE(life, outage);
      INFO(log.status());
      REQUIRE(log.ok());
      const std::vector<KeptRecord> found = MustReadAll(**log);
      REQUIRE(Explains(said, found));
      // What is there now counts.
      said = {};
      for (const KeptRecord& r : found) {
        said.tried.push_back({r});
        said.ok.push_back(true);
      }
      files.Adopt(directory);
      AppendAtRandom(**log, files, random, next, said);
      const std::string after = folder.path() + "/" + std::to_string(outage);
      std::filesystem::create_directories(after);
      files.PowerLoss(directory, after);
      directory = after;
    }
  }
}

}  // namespace
}  // namespace strata::storage

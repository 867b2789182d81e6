// Reading a log on from where it was left.
#include "storage/log/segment_reader.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/log/format.h"
#include "storage/log/record.h"
#include "storage/log/update_log.h"
#include "tests/storage/io/file_bytes.h"
#include "tests/storage/log/fixture.h"
#include "tests/temp_folder.h"

namespace strata::storage {
namespace {

// Up to `most` records of even numbers (all: of any) from `place` on, which goes on.
std::vector<KeptRecord> Take(UpdateLog& log, LogPosition& place, size_t most, bool all = true) {
  std::vector<KeptRecord> out;
  const auto wanted = [all](const LogHeader& h) { return all || h.step.value % 2 == 0; };
  const auto next = log.ReadOn(place, wanted, [&](const LogRecordView& r) -> absl::StatusOr<bool> {
    CHECK(reinterpret_cast<uintptr_t>(r.payload.data()) % 8 == 0);
    out.push_back({r.header, Bytes(r.payload.begin(), r.payload.end())});
    return out.size() < most;
  });
  if (!next.ok()) FAIL(next.status().ToString());
  CHECK(place <= *next);
  place = *next;
  return out;
}

TEST_CASE("a log is read on from where it was left, over segments and behind its end",
          "[storage][log]") {
  const TempFolder folder;
  // Buffered and direct; the second has records on blocks of their own.
  for (const uint64_t direct_from : {uint64_t{1} << 30, uint64_t{0}}) {
    auto log = MustOpen({.directory = folder.path() + "/log-" + std::to_string(direct_from),
                         .segment_bytes = 100'000,
                         .direct_from_bytes = direct_from});
    std::vector<KeptRecord> kept, read;
    LogPosition place;
    const auto grow = [&](uint64_t records) {
      for (uint64_t i = 0; i < records; ++i) {
        kept.push_back(RecordOf(kept.size() + 1, 1 + kept.size() * 977 % 9'000));
        REQUIRE(Append(*log, kept.back()).ok());
      }
    };
    CHECK(Take(*log, place, 3).empty());
    grow(40);
    kept.push_back(RecordOf(41, 2 * SegmentReader::kWindowBytes + 5));
    REQUIRE(Append(*log, kept.back()).ok());
    grow(20);
    for (size_t most = 1; read.size() < kept.size(); ++most) {
      const auto some = Take(*log, place, most);
      REQUIRE(!some.empty());
      read.insert(read.end(), some.begin(), some.end());
      if (kept.size() < 200) grow(3);
    }
    CHECK(read == kept);
    CHECK(Take(*log, place, 1).empty());
    REQUIRE(log->Rotate().ok());
    grow(1);
    CHECK(Take(*log, place, 9) == std::vector{kept.back()});
    // Of some of them.
    place = {};
    const auto even = Take(*log, place, 1 << 20, /*all=*/false);
    CHECK(even.size() == kept.size() / 2);
    for (const KeptRecord& r : even) CHECK(r == kept[r.header.step.value - 1]);
    CHECK(log->stats().last_segment > 3);
  }
}

TEST_CASE("a place that was trimmed is told, and what does not check", "[storage][log]") {
  const TempFolder folder;
  auto log = MustOpen({.directory = folder.path(), .segment_bytes = 1000});
  for (uint64_t i = 1; i <= 9; ++i) REQUIRE(Append(*log, RecordOf(i, 900)).ok());
  LogPosition place;
  REQUIRE(Take(*log, place, 2).size() == 2);
  REQUIRE(log->Trim(5).ok());
  const auto none = [](const LogRecordView&) -> absl::StatusOr<bool> { return true; };
  CHECK(absl::IsOutOfRange(log->ReadOn(place, nullptr, none).status()));
  place = {};
  CHECK(Take(*log, place, 1) == std::vector{RecordOf(5, 900)});
  const std::string path = folder.path() + "/" + log::SegmentName(7);
  Bytes bytes = ReadFile(path);
  bytes[log::kSegmentHeaderBytes + log::kRecordHeaderBytes + 5] ^= 1;
  WriteFile(path, bytes);
  const absl::Status damaged = log->ReadOn(place, nullptr, none).status();
  CHECK(absl::IsDataLoss(damaged));
  CHECK(std::string(damaged.message()).find(path) != std::string::npos);
  // Only what is wanted has to be whole.
  const auto others = [](const LogHeader& h) { return h.step.value != 7; };
  CHECK(log->ReadOn(place, others, none).ok());
  const auto failed = [](const LogRecordView&) -> absl::StatusOr<bool> {
    return absl::AbortedError("no more");
  };
  CHECK(absl::IsAborted(log->ReadOn(place, others, failed).status()));
}

}  // namespace
}  // namespace strata::storage

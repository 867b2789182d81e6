// A shard's log is read once, however long it is and in however many pieces.
#include "server/job/chain_reader.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/core/ids.h"
#include "server/job/chain_entries.h"
#include "server/protocol/replica_chain.h"
#include "server/shard/update_record.h"
#include "storage/log/record.h"
#include "storage/log/update_log.h"
#include "tests/temp_folder.h"

namespace strata::server {
namespace {

constexpr uint64_t kAll = uint64_t{1} << 40;
constexpr uint32_t kShards = 3;

// A log that counts the records which are looked at.
class CountingLog final : public storage::UpdateLog {
 public:
  explicit CountingLog(const std::string& directory)
      : log_(*UpdateLog::Open({.directory = directory, .segment_bytes = 20'000})) {}
  using storage::UpdateLog::Append;
  absl::StatusOr<storage::LogPosition> Append(std::span<const storage::LogEntry> entries) override {
    return log_->Append(entries);
  }
  absl::Status Replay(uint64_t from_segment, const Filter& wanted, const Visitor& visit) override {
    return log_->Replay(from_segment, Counted(wanted), visit);
  }
  absl::StatusOr<storage::LogPosition> ReadOn(storage::LogPosition from, const Filter& wanted,
                                              const Taker& take) override {
    return log_->ReadOn(from, Counted(wanted), take);
  }
  absl::StatusOr<uint64_t> Rotate() override { return log_->Rotate(); }
  absl::Status Trim(uint64_t before) override { return log_->Trim(before); }
  storage::LogStats stats() const override { return log_->stats(); }
  uint64_t BytesFrom(uint64_t segment) const override { return log_->BytesFrom(segment); }

  uint64_t looked_at = 0;

 private:
  Filter Counted(const Filter& wanted) {
    return [this, wanted](const storage::LogHeader& header) {
      ++looked_at;
      return wanted == nullptr || wanted(header);
    };
  }
  const std::unique_ptr<storage::UpdateLog> log_;
};

struct Bench {
  TempFolder folder;
  CountingLog log{folder.path()};
  ChainSegments segments;
  std::vector<uint64_t> begins;  // of shard 1's step i: its segment

  void Put(uint64_t step, RecordKind kind = RecordKind::kStep, uint64_t window = 0) {
    const std::vector<uint8_t> payload(100 + step % 300, static_cast<uint8_t>(step));
    for (uint32_t shard = 0; shard < kShards; ++shard) {
      storage::LogHeader header;
      header.kind = static_cast<uint16_t>(kind);
      header.shard = ShardId(shard);
      header.step = Step(step);
      header.window = window;
      const std::span<const uint8_t> parts[] = {payload};
      const auto at = log.Append(storage::LogEntry{header, parts});
      REQUIRE(at.ok());
      if (shard == 1 && kind == RecordKind::kStep) segments.Appended({step - 1, 0}, at->segment);
    }
  }
  // Steps that come after `after`.
  std::vector<uint64_t> Read(ChainReader& reader, uint64_t after, uint64_t through, uint64_t most) {
    const auto entries =
        reader.Read(log, ShardId(1), segments.From({after, 0}), {after, 0}, {through, 0}, most);
    INFO(entries.status());
    REQUIRE(entries.ok());
    std::vector<uint64_t> steps;
    for (const ChainEntryPtr& e : *entries) {
      steps.push_back(e->end.step);
      CHECK(e->sent.view().payload.size() == 100 + e->end.step % 300);
    }
    return steps;
  }
};

TEST_CASE("a log is read on where reading stopped, while it grows", "[chain_reader]") {
  Bench bench;
  uint64_t written = 0, read = 0, calls = 0;
  const auto grow = [&](uint64_t steps) {
    while (steps-- > 0) bench.Put(++written);
  };
  grow(300);
  CHECK(bench.log.stats().last_segment > 10);
  ChainReader reader;
  while (read < written) {
    const auto steps = bench.Read(reader, read, written, 1000);
    ++calls;
    for (const uint64_t step : steps) REQUIRE(step == ++read);
    if (written < 600) grow(1);
  }
  CHECK(read == 600);
  CHECK(calls > 100);
  CHECK(bench.log.looked_at <= kShards * written + 2 * calls);
  // Not beyond what was asked for, and one at least.
  ChainReader another;
  CHECK(bench.Read(another, 500, 502, kAll) == std::vector<uint64_t>{501, 502});
  CHECK(bench.Read(another, 502, 600, 1) == std::vector<uint64_t>{503});
}

TEST_CASE("who asks for another place gets it, from the segment where it lies", "[chain_reader]") {
  Bench bench;
  for (uint64_t step = 1; step <= 300; ++step) bench.Put(step);
  ChainReader reader;
  CHECK(bench.Read(reader, 290, 300, 1) == std::vector<uint64_t>{291});
  CHECK(bench.log.looked_at < 200);  // of 900
  CHECK(bench.Read(reader, 10, 300, 1) == std::vector<uint64_t>{11});
  CHECK(bench.Read(reader, 295, 300, 1) == std::vector<uint64_t>{296});
  CHECK(bench.log.looked_at < 600);
}

TEST_CASE("a log that does not reach back says so", "[chain_reader]") {
  Bench bench;
  for (uint64_t step = 1; step <= 300; ++step) bench.Put(step);
  const uint64_t gone = bench.segments.From({150, 0});
  CHECK(gone > 5);
  REQUIRE(bench.log.Trim(gone).ok());
  bench.segments.Trimmed(gone);
  ChainReader reader;
  CHECK(bench.Read(reader, 150, 300, 1) == std::vector<uint64_t>{151});
  const auto lost = [&](uint64_t after) {
    return reader
        .Read(bench.log, ShardId(1), bench.segments.From({after, 0}), {after, 0}, {300, 0}, 1)
        .status();
  };
  CHECK(absl::IsOutOfRange(lost(20)));
  CHECK(absl::IsOutOfRange(lost(300)));
  CHECK(bench.Read(reader, 151, 300, 1) == std::vector<uint64_t>{152});
}

TEST_CASE("cuts lie between windows, each once", "[chain_reader]") {
  Bench bench;
  for (uint64_t step = 1; step <= 3; ++step) bench.Put(step, RecordKind::kWindow);
  bench.Put(3, RecordKind::kCut, 7);
  bench.Put(3, RecordKind::kCut, 7);  // written again after an error
  bench.Put(4, RecordKind::kWindow);
  ChainReader reader;
  const auto entries = reader.Read(bench.log, ShardId(1), 0, {2, 0}, {4, 7}, kAll);
  REQUIRE(entries.ok());
  std::vector<LogEnd> ends;
  for (const ChainEntryPtr& e : *entries) ends.push_back(e->end);
  CHECK(ends == std::vector<LogEnd>{{3, 0}, {3, 7}, {4, 7}});
}

TEST_CASE("of each segment is known which entries lie before it", "[chain_reader]") {
  ChainSegments segments;
  CHECK(segments.From({5, 0}) == 0);
  segments.Appended({10, 0}, 4);
  segments.Appended({11, 0}, 4);
  segments.Appended({20, 0}, 6);
  CHECK(segments.From({9, 0}) == 0);
  CHECK(segments.From({10, 0}) == 4);
  CHECK(segments.From({19, 3}) == 4);
  CHECK(segments.From({20, 0}) == 6);
  CHECK(segments.From({99, 0}) == 6);
  segments.Trimmed(6);
  CHECK(segments.From({19, 0}) == 0);
  CHECK(segments.From({20, 0}) == 6);
}

}  // namespace
}  // namespace strata::server

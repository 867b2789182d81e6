// Snapshots of a real shard on executors and a clock that move when the test says so.
#include "server/snapshot/driver.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "proto/runtime/base/executor.h"
#include "proto/runtime/base/manual_timer.h"
#include "server/snapshot/pace.h"
#include "server/snapshot/progress.h"
#include "server/table/snapshot.h"
#include "storage/checkpoint/shard_file.h"
#include "tests/server/shard/shard_fixture.h"
#include "tests/temp_folder.h"

namespace strata::server {
namespace {

constexpr uint32_t kDim = 1024;
constexpr uint64_t kRows = 1000;  // of 8 KiB: 31 pieces
constexpr uint64_t kShardBytes = kRows * (2 * kDim * 4 + 8);

std::unique_ptr<Shard> BigShard() {
  TableSpec spec;
  spec.id = TableId(0);
  spec.name = "features";
  spec.segments = {{"a", kDim, {}, {OptimizerType::kAdagrad, 0.1f}}};
  ShardSetup setup;
  setup.tables = {spec};
  setup.lanes = 1;
  auto shard = MakeShard(setup);
  struct Owned {
    std::vector<Position> positions;
    std::vector<float> values;
  };
  auto owned = std::make_shared<Owned>();
  for (uint64_t i = 0; i < kRows; ++i) owned->positions.emplace_back(i << 54);
  owned->values.assign(kRows * kDim, 0.5f);
  ShardUpdate update;
  update.examples = 1;
  update.tables.push_back({owned->positions, owned->values.data(), owned});
  REQUIRE(shard->Contribute(Step(1), {0, 1}, std::move(update)).verdict == GateVerdict::kHeld);
  auto done = shard->TryCommit();
  REQUIRE(done.ok());
  REQUIRE(*done);
  return shard;
}

struct Bench {
  explicit Bench(uint64_t bytes_per_second)
      : pace(bytes_per_second),
        driver({.post = [this](std::function<void()> work) { executor.Post(std::move(work)); },
                .disk = &disk,
                .timer = &timer,
                .pace = &pace,
                .caught_up = [this] { ++caught_up; }}) {}
  // Snapshots that were dropped may still have a piece with the disk.
  ~Bench() {
    driver.DropAll();
    disk.RunAll();
  }

  std::string PathOf(int n) const { return folder.path() + "/image-" + std::to_string(n); }
  uint64_t Begin(int n) { return Begin(n, shard->SnapshotImage(0), nullptr); }
  uint64_t Begin(int n, absl::StatusOr<std::unique_ptr<ShardSnapshot>> snapshot,
                 std::shared_ptr<SnapshotProgress> progress) {
    REQUIRE(snapshot.ok());
    return driver.Begin(
        *std::move(snapshot), PathOf(n),
        [this, n](absl::StatusOr<SnapshotDriver::Result> result) {
          ended.push_back(n);
          results.push_back(std::move(result));
        },
        std::move(progress));
  }
  // Runs all that can run without time passing.
  void Settle() {
    while (executor.RunAll() + disk.RunAll() > 0) continue;
  }
  // How long until `n` snapshots have ended, where a request is served every so often.
  absl::Duration TimeFor(size_t n, absl::Duration served_every) {
    const absl::Time start = timer.Now();
    absl::Time serve = start;
    for (;;) {
      Settle();
      if (results.size() >= n) return timer.Now() - start;
      REQUIRE(timer.Now() - start < absl::Minutes(10));
      timer.Advance(absl::Milliseconds(1));
      if (timer.Now() >= serve) {
        driver.Served();
        serve = timer.Now() + served_every;
      }
    }
  }

  TempFolder folder;
  std::unique_ptr<Shard> shard = BigShard();
  ManualExecutor executor;
  ManualExecutor disk;
  ManualTimer timer;
  SnapshotPace pace;
  int caught_up = 0;
  std::vector<int> ended;
  std::vector<absl::StatusOr<SnapshotDriver::Result>> results;
  SnapshotDriver driver;
};

void CheckWhole(Bench& bench, size_t result) {
  const auto& r = bench.results[result];
  INFO(r.status());
  REQUIRE(r.ok());
  CHECK(r->summary.rows == kRows);
  CHECK(r->hash == bench.shard->Summarize()->hash);
  auto file = storage::ShardFileReader::Open(bench.PathOf(bench.ended[result]));
  REQUIRE(file.ok());
  CHECK((*file)->rows(TableId(0)) == kRows);
}

TEST_CASE("a snapshot keeps to the pace while requests are served", "[server][snapshot]") {
  constexpr uint64_t kRate = 1'000'000;
  Bench bench(kRate);
  bench.driver.Served();
  bench.Begin(0);
  const double seconds = absl::ToDoubleSeconds(bench.TimeFor(1, absl::Milliseconds(100)));
  // A burst at once, then at the pace; the last piece need not be waited for.
  const double least = static_cast<double>(kShardBytes - SnapshotPace::kBurstBytes -
                                           2 * TableSnapshot::kPieceBytes) /
                       kRate;
  const double most = static_cast<double>(kShardBytes - SnapshotPace::kBurstBytes +
                                          2 * TableSnapshot::kPieceBytes) /
                      kRate;
  CHECK(seconds >= least);
  CHECK(seconds <= most);
  CheckWhole(bench, 0);
}

TEST_CASE("two snapshots share the pace", "[server][snapshot]") {
  constexpr uint64_t kRate = 1'000'000;
  Bench bench(kRate);
  bench.driver.Served();
  bench.Begin(0);
  bench.Begin(1);
  const double seconds = absl::ToDoubleSeconds(bench.TimeFor(2, absl::Milliseconds(100)));
  CHECK(seconds >= static_cast<double>(2 * kShardBytes - SnapshotPace::kBurstBytes -
                                       4 * TableSnapshot::kPieceBytes) /
                       kRate);
  CHECK(bench.caught_up == 0);
  CheckWhole(bench, 0);
  CheckWhole(bench, 1);
}

TEST_CASE("a shard that serves nothing writes as fast as it can", "[server][snapshot]") {
  Bench bench(1);  // byte a second
  bench.Begin(0);
  CHECK(bench.TimeFor(1, absl::InfiniteDuration()) == absl::ZeroDuration());
  CheckWhole(bench, 0);
  // One that stops serving waits no longer than it had to when it last read.
  bench.driver.Served();
  bench.Begin(1);
  bench.Settle();
  CHECK(bench.results.size() == 1);
  const absl::Time last = bench.timer.Now();
  while (bench.results.size() < 2) {
    REQUIRE(bench.timer.Now() - last < absl::Seconds(2 * TableSnapshot::kPieceBytes));
    bench.timer.Advance(absl::Hours(1));
    bench.Settle();
  }
  CheckWhole(bench, 1);
}

TEST_CASE("a third snapshot makes commits wait, and all of them hurry", "[server][snapshot]") {
  Bench bench(1'000'000);
  bench.driver.Served();
  bench.Begin(0);
  bench.Begin(1);
  bench.Settle();
  CHECK(bench.results.empty());
  CHECK_FALSE(bench.driver.NeedsPriority());
  const absl::Time start = bench.timer.Now();
  bench.Begin(2);
  CHECK(bench.driver.NeedsPriority());
  CHECK(bench.caught_up == 0);
  bench.Settle();  // without time
  REQUIRE(bench.results.size() == 1);
  CHECK(bench.ended[0] == 2);  // the others wait for the timer that they had asked for
  CHECK(bench.caught_up == 1);
  CHECK_FALSE(bench.driver.NeedsPriority());
  CHECK(bench.timer.Now() == start);
  bench.TimeFor(3, absl::Milliseconds(100));
  CHECK(bench.caught_up == 1);
  for (size_t i = 0; i < 3; ++i) CheckWhole(bench, i);
}

TEST_CASE("a disk that does not keep up holds eight pieces and no more", "[server][snapshot]") {
  Bench bench(0);
  bench.Begin(0);
  for (int round = 0; bench.results.empty(); ++round) {
    REQUIRE(round < 20);
    bench.executor.RunAll();
    CHECK(bench.executor.waiting() == 0);
    size_t pieces = 0;
    while (bench.disk.RunOne()) ++pieces;
    if (round == 0)
      CHECK(pieces == SnapshotDriver::kQueuePieces + 1);  // and one that finds nothing
    REQUIRE(pieces <= SnapshotDriver::kQueuePieces + 2);  // and the file's end
  }
  CheckWhole(bench, 0);
}

TEST_CASE("bytes are counted as they are written, up to the file's size", "[server][snapshot]") {
  Bench bench(0);
  auto progress = std::make_shared<SnapshotProgress>();
  bench.Begin(0, bench.shard->SnapshotCheckpoint({.cut = Step(1)}), progress);
  CHECK(progress->total_bytes == kShardBytes + 8 * kRows);
  uint64_t before = 0;
  int steps = 0;
  while (bench.results.empty()) {
    bench.executor.RunAll();
    CHECK(progress->written_bytes == before);  // what is read is not written yet
    REQUIRE(bench.disk.RunOne());
    CHECK(progress->written_bytes - before <= 2 * TableSnapshot::kPieceBytes);
    steps += progress->written_bytes > before;
    before = progress->written_bytes;
    bench.executor.RunAll();
  }
  CHECK(steps >= 31);
  CheckWhole(bench, 0);
  const uint64_t size = std::filesystem::file_size(bench.PathOf(0));
  CHECK(progress->written_bytes == size);
  CHECK(progress->total_bytes == size);
  CHECK(kShardBytes + 8 * kRows > size * 99 / 100);  // what was expected was near
}

TEST_CASE("a snapshot that is dropped calls nobody and leaves no file", "[server][snapshot]") {
  Bench bench(1'000'000);
  bench.driver.Served();
  const uint64_t first = bench.Begin(0);
  bench.Begin(1);
  bench.executor.RunAll();
  bench.disk.RunOne();
  bench.driver.Drop(first);
  bench.TimeFor(1, absl::Milliseconds(100));
  CHECK(bench.ended == std::vector<int>{1});
  CheckWhole(bench, 0);
  CHECK_FALSE(bench.driver.busy());
  bench.Settle();
  const auto files = std::distance(std::filesystem::directory_iterator(bench.folder.path()),
                                   std::filesystem::directory_iterator());
  CHECK(files == 1);
}

// Who removes what earlier cuts left may take a folder that is empty still.
TEST_CASE("a folder that went before its file came is made again", "[server][snapshot]") {
  Bench bench(0);
  bench.Begin(0);
  std::filesystem::remove_all(bench.folder.path());
  bench.Settle();
  CHECK(bench.ended == std::vector<int>{0});
  CheckWhole(bench, 0);
}

// As where another process of the server had the same cut to take.
TEST_CASE("a file that gets no name leaves somebody else's where it is", "[server][snapshot]") {
  namespace fs = std::filesystem;
  Bench bench(0);
  std::ofstream(bench.PathOf(0)) << "theirs";
  bench.Begin(0);
  fs::path begun;
  while (begun.empty()) {
    REQUIRE(bench.executor.RunAll() + bench.disk.RunOne() > 0);
    for (const auto& entry : fs::directory_iterator(bench.folder.path())) {
      if (entry.path() != bench.PathOf(0)) begun = entry.path();
    }
  }
  fs::remove(begun);  // so that it cannot be renamed
  bench.Settle();
  REQUIRE(bench.ended == std::vector<int>{0});
  CHECK_FALSE(bench.results.at(0).ok());
  bench.driver.DropAll();
  bench.Settle();
  CHECK(fs::file_size(bench.PathOf(0)) == 6);
}

}  // namespace
}  // namespace strata::server

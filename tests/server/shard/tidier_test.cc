#include "server/shard/tidier.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/runtime/base/executor.h"
#include "proto/runtime/base/manual_timer.h"

namespace strata::server {
namespace {

// A table that takes `cost` for a slice and writes what is left of `bytes`, a million at a time.
struct Bench {
  ManualExecutor executor;
  ManualTimer timer;
  absl::Duration cost;
  uint64_t bytes = 0;
  absl::Status disk;
  int failures = 0;
  std::vector<absl::Time> slices;
  Tidier tidier{{.timer = &timer,
                 .owner = this,
                 .bytes_per_second = 1e8,
                 .post = [this](std::function<void()> work) { executor.Post(std::move(work)); },
                 .tidy = [this](size_t rows) -> absl::StatusOr<uint64_t> {
                   CHECK(rows == Tidier::kSliceRows);
                   slices.push_back(timer.Now());
                   if (!disk.ok()) return disk;
                   timer.Advance(cost);
                   const uint64_t n = std::min<uint64_t>(bytes, 1'000'000);
                   bytes -= n;
                   return n;
                 },
                 .failed = [this] { ++failures; }}};
  ~Bench() { timer.Cancel(this); }
  // Runs what is due for so long.
  void Pass(absl::Duration time) {
    for (const absl::Time end = timer.Now() + time; timer.Now() < end;) {
      executor.RunAll();
      timer.Advance(absl::Milliseconds(1));
    }
    executor.RunAll();
  }
};

TEST_CASE("slices keep to their share of the executor's time", "[server][tidier]") {
  Bench bench;
  bench.cost = absl::Milliseconds(20);
  bench.bytes = 1'000'000'000;
  bench.tidier.Wake();
  bench.Pass(absl::Seconds(10));
  // 20 ms of every 200.
  CHECK(bench.slices.size() >= 49);
  CHECK(bench.slices.size() <= 51);
}

TEST_CASE("slices keep to their share of the disk", "[server][tidier]") {
  Bench bench;
  bench.bytes = 1'000'000'000;
  bench.tidier.Wake();
  bench.Pass(absl::Seconds(5));
  CHECK(1'000'000'000 - bench.bytes <= 501'000'000);
  CHECK(1'000'000'000 - bench.bytes >= 450'000'000);
  // Waking it does not make it faster.
  const uint64_t before = bench.bytes;
  for (int i = 0; i < 1000; ++i) {
    bench.tidier.Wake();
    bench.Pass(absl::Milliseconds(1));
  }
  CHECK(before - bench.bytes <= 101'000'000);
}

TEST_CASE("it rests when nothing is left, and when the disk fails", "[server][tidier]") {
  Bench bench;
  bench.bytes = 2'500'000;
  bench.tidier.Wake();
  bench.tidier.Wake();
  bench.Pass(absl::Seconds(1));
  CHECK(bench.slices.size() == 4);  // three that wrote, one that found nothing
  bench.Pass(absl::Seconds(1));
  CHECK(bench.slices.size() == 4);
  bench.disk = absl::UnavailableError("the disk");
  bench.tidier.Wake();
  bench.Pass(absl::Seconds(1));
  CHECK(bench.slices.size() == 5);
  CHECK(bench.failures == 1);
  bench.disk = absl::OkStatus();
  bench.bytes = 1;
  bench.tidier.Wake();
  bench.Pass(absl::Seconds(1));
  CHECK(bench.slices.size() == 7);
  CHECK(bench.bytes == 0);
}

}  // namespace
}  // namespace strata::server

#include "server/snapshot/pace.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <random>
#include <vector>

#include "absl/time/time.h"
#include "tests/seed.h"

namespace strata::server {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1767225600);
constexpr uint64_t kRate = 10'000'000;  // bytes a second
const absl::Duration kBurst = absl::Seconds(static_cast<double>(SnapshotPace::kBurstBytes) / kRate);

TEST_CASE("a pace of 0 is none", "[server][snapshot]") {
  SnapshotPace pace(0);
  for (int i = 0; i < 10; ++i) CHECK(pace.Took(kStart, uint64_t{1} << 40) < kStart);
}

// Readers that read when they may, some of them late: together never more than rate x time and one
// burst, and not less than that while they are ready.
TEST_CASE("all readers together keep to the rate", "[server][snapshot][seeds]") {
  for (const uint64_t seed : Seeds("snapshot_pace", 1, 20)) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    SnapshotPace pace(kRate);
    const int readers = static_cast<int>(1 + random() % 4);
    const bool idles = random() % 2 == 0;
    std::vector<absl::Time> ready(static_cast<size_t>(readers), kStart);
    uint64_t bytes = 0, most = 0;
    absl::Time now = kStart;
    for (int i = 0; i < 5000; ++i) {
      const auto next = std::min_element(ready.begin(), ready.end());
      now = std::max(now, *next);
      if (idles && random() % 500 == 0) now += absl::Seconds(2);  // nobody had anything to read
      const uint64_t piece = 1 + random() % (uint64_t{1} << 18);
      most = std::max(most, piece);
      *next = pace.Took(now, piece);
      bytes += piece;
      const double allowed = absl::ToDoubleSeconds(now - kStart) * kRate;
      REQUIRE(static_cast<double>(bytes) <=
              allowed + SnapshotPace::kBurstBytes + static_cast<double>(readers) * most +
                  absl::ToDoubleSeconds(SnapshotPace::kLeastWait) * kRate);
      if (!idles) REQUIRE(static_cast<double>(bytes) >= allowed);
    }
    CHECK(now - kStart > absl::Seconds(5));
  }
}

TEST_CASE("short waits are saved up, and who is late catches up one burst at most",
          "[server][snapshot]") {
  SnapshotPace pace(kRate);
  absl::Time now = kStart;
  // After a pause a burst may be read at once.
  uint64_t bytes = 0;
  for (;; bytes += 100'000) {
    const absl::Time next = pace.Took(now, 100'000);
    if (next > now) {
      CHECK(next - now >= SnapshotPace::kLeastWait);
      break;
    }
    REQUIRE(bytes < 2 * SnapshotPace::kBurstBytes);
  }
  CHECK(bytes >= SnapshotPace::kBurstBytes - 100'000);
  CHECK(bytes <= SnapshotPace::kBurstBytes + 100'000);
  // Late by an hour is late by a burst.
  now += absl::Hours(1);
  const absl::Time next = pace.Took(now, 1);
  CHECK(next < now - SnapshotPace::kLate);
  CHECK(next >= now - kBurst);
}

}  // namespace
}  // namespace strata::server

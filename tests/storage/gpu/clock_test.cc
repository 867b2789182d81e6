#include "storage/gpu/clock.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>

#include "storage/eviction/kind.h"
#include "storage/eviction/lrfu_score.h"
#include "storage/gpu/score.h"

namespace strata::storage::gpu {
namespace {

// One row is referenced by every batch: its score never wraps, and never falls behind that of a
// row that comes.
void HotRowStaysHot(EvictionKind kind, size_t capacity, size_t references) {
  GpuClock clock(kind, capacity);
  const uint16_t* gains = LrfuGainTable().data();
  uint16_t hot = FirstScore({kind, clock.now(), gains}, 0);
  uint32_t agings = 0;
  bool right = true;
  for (int batch = 0; batch < 300'000; ++batch) {
    const GpuScoring scoring{kind, clock.now(), gains};
    const uint16_t before = hot;
    hot = TouchedScore(scoring, hot);
    right &= hot >= before && hot >= FirstScore(scoring, 0) && clock.now() >= 1;
    const GpuAging aging = clock.Pass(references);
    if (!aging) continue;
    ++agings;
    hot = AgedScore(aging, hot, 1);
  }
  CHECK(right);
  CHECK(agings >= 2);
}

TEST_CASE("scores do not wrap however long a table lives", "[storage][gpu]") {
  for (const size_t capacity : {size_t{32}, size_t{1000}, size_t{1} << 20}) {
    for (const size_t references : {capacity, capacity / 2}) {
      HotRowStaysHot(EvictionKind::kLru, capacity, references);
      HotRowStaysHot(EvictionKind::kLfu, capacity, references);
      HotRowStaysHot(EvictionKind::kLrfu, capacity, references);
    }
  }
}

TEST_CASE("time passes by references", "[storage][gpu]") {
  GpuClock lru(EvictionKind::kLru, 256 * 100);
  CHECK(!lru.Pass(99));
  CHECK(lru.now() == 1);
  CHECK(!lru.Pass(1));
  CHECK(lru.now() == 2);
  CHECK(!lru.Pass(1050));
  CHECK(lru.now() == 12);
  // Half of a value is lost after kLrfuHalfLife times the capacity: one unit of the logarithm.
  GpuClock lrfu(EvictionKind::kLrfu, 1600);
  for (size_t i = 0; i < kLrfuHalfLife; ++i) CHECK(!lrfu.Pass(1600));
  CHECK(lrfu.now() == 1 + kLrfuUnit);
}

}  // namespace
}  // namespace strata::storage::gpu

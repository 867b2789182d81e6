#include "worker/step/feature_counts.h"

#include <catch2/catch.hpp>

namespace strata {
namespace {

TEST_CASE("the longest lines are counted first, whatever their order", "[step]") {
  FeatureCounts counts;
  CHECK(counts.empty());
  CHECK(counts.OfLongest(10) == 0);
  for (const uint64_t features : {3, 100, 3, 0, 7, 100, 3}) counts.Add(features);
  CHECK_FALSE(counts.empty());
  CHECK(counts.OfLongest(0) == 0);
  CHECK(counts.OfLongest(1) == 100);
  CHECK(counts.OfLongest(2) == 200);
  CHECK(counts.OfLongest(3) == 207);
  CHECK(counts.OfLongest(5) == 213);
  CHECK(counts.OfLongest(7) == 216);
  CHECK(counts.OfLongest(1000) == 216);
}

}  // namespace
}  // namespace strata

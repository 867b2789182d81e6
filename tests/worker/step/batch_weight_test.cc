#include "worker/step/batch_weight.h"

#include <catch2/catch.hpp>
#include <limits>

namespace strata {
namespace {

TEST_CASE("a batch weighs what its lines with a label weigh", "[batch]") {
  constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
  Batch batch;
  batch.Clear();
  CHECK(SumOfWeights(batch) == 0);
  batch.size = 3;
  batch.labels = {0, 1, 0};
  CHECK(SumOfWeights(batch) == 3);
  batch.tasks = 2;
  batch.labels = {0, kNone, kNone, kNone, kNone, 4.5f};
  CHECK(SumOfWeights(batch) == 2);
  batch.weights = {0.5f, 100, kWeightUnit};
  CHECK(SumOfWeights(batch) == (uint64_t{1} << 23) + 1);
  batch.weights = {0, 1, 0};
  CHECK(SumOfWeights(batch) == 0);
}

}  // namespace
}  // namespace strata

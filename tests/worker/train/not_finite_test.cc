#include "worker/train/not_finite.h"

#include <catch2/catch.hpp>
#include <limits>
#include <vector>

#include "worker/step/batch.h"

namespace strata {
namespace {

using Feature = TrainingStats::Feature;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinite = std::numeric_limits<float>::infinity();

// Two examples of three features; keys 5, 7 and 9 are distinct in this order.
struct Input {
  Batch batch;
  RoutedKeys routed;
  Input() {
    batch.size = 2;
    batch.offsets = {0, 3, 6};
    batch.keys = {7, 5, 9, 7, 5, 5};
    routed.keys = std::vector<uint64_t>{5, 7, 9};
    routed.runs = {{0, 0, 3}};
    routed.first = {0, 3, 5, 6};
    routed.occurrences = {1, 4, 5, 0, 3, 2};
  }
};

TEST_CASE("what is not finite is told by key, and by the field where it occurs first",
          "[not_finite]") {
  Input in;
  const std::vector<uint32_t> dims = {2};
  const std::vector<float> rows = {kNan, 1, 1, 1, 1, -kInfinite};
  CHECK(FirstNotFinite(in.batch, in.routed, dims, rows, 8) == std::vector<Feature>{{5, 1}, {9, 2}});
  CHECK(FirstNotFinite(in.batch, in.routed, dims, rows, 1) == std::vector<Feature>{{5, 1}});
  CHECK(FirstNotFinite(in.batch, in.routed, dims, std::vector<float>(6, 1e38f), 8).empty());
  // Of an example after the first.
  in.routed.occurrences = {4, 1, 5, 0, 3, 2};
  CHECK(FirstNotFinite(in.batch, in.routed, dims, rows, 1) == std::vector<Feature>{{5, 1}});
  in.routed.occurrences = {5, 1, 4, 0, 3, 2};
  CHECK(FirstNotFinite(in.batch, in.routed, dims, rows, 1) == std::vector<Feature>{{5, 2}});
  // The data say which field.
  in.batch.fields = {0, 0, 4, 1, 3, 6};
  CHECK(FirstNotFinite(in.batch, in.routed, dims, rows, 8) == std::vector<Feature>{{5, 6}, {9, 4}});
  CHECK(FirstNotFinite(Batch(), RoutedKeys(), dims, {}, 8).empty());
}

}  // namespace
}  // namespace strata

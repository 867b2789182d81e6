// Items that several lanes work on, with lanes that are threads: the device's split of an item, and
// what its lanes exchange, give the bits of the host's single lane.
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>
#include <vector>

#include "ops/cuda/kernel/group.h"
#include "ops/cuda/kernel/row_sum16.h"
#include "ops/cuda/kernel/scan.h"
#include "ops/cuda/kernel/vector4.h"
#include "ops/cuda/rows/apply_plan.h"
#include "ops/cuda/rows/apply_rows.h"
#include "ops/optimizer.h"
#include "ops/optimizer_rules.h"
#include "ops/row_norm.h"
#include "tests/ops/cuda/api/test_apis.h"
#include "tests/ops/cuda/kernel/lane_threads.h"
#include "tests/ops/optimizer_rows.h"

namespace strata::ops::gpu {
namespace {

using ops::testing::Config;
using testing::Differences;
using testing::ForEachLane;
using testing::LaneThread;
using testing::Random;
using testing::RunByLanes;

// Squares of x, added and folded by a group; each lane's result.
template <typename Group>
float SquaresBy(const Group& group, const std::vector<float>& x) {
  RowSum16<Group> sum;
  const auto dim = static_cast<uint32_t>(x.size());
  for (uint32_t quad = RowSum16<Group>::First(group); quad * 4 < dim;
       quad += RowSum16<Group>::kStep) {
    const uint32_t n = dim - quad * 4;
    sum.AddSquares(quad, Load4(x.data() + quad * 4, n, false), n);
  }
  return sum.Fold(group);
}

template <uint32_t kWidth>
void CheckSquares(const std::vector<float>& x, float want) {
  std::vector<float> got(kWidth);
  ForEachLane<kWidth>(
      [&](const LaneThread<kWidth>& group) { got[group.lane()] = SquaresBy(group, x); });
  CHECK(Differences(got, std::vector<float>(kWidth, want)) == 0);
}

TEST_CASE("a row's sum is the same for 1, 4, 8 and 32 lanes", "[ops][cuda][exact]") {
  for (uint32_t dim : {1u, 3u, 4u, 15u, 16u, 17u, 31u, 33u, 64u, 100u, 128u, 131u}) {
    const std::vector<float> x = Random(dim).Floats(dim);
    const float want = SumOfSquares(x.data(), 1.0f, 1.0f, dim);
    INFO("dim " << dim);
    CHECK(SquaresBy(OneLane(), x) == want);
    CheckSquares<4>(x, want);
    CheckSquares<8>(x, want);
    CheckSquares<32>(x, want);
  }
}

template <typename Functor>
void CheckShape(const OptimizerConfig& config, uint32_t dim) {
  constexpr uint32_t kRows = 9;
  const uint32_t offset = (dim + 3) / 4 * 4, stride = offset + 2 * dim + 4;
  Random random(dim);
  std::vector<float> table = random.Floats(kRows * stride), sums = random.Floats(kRows * dim);
  for (float& x : table) x = std::fabs(x);
  sums[dim * 2] = ops::testing::kNan;
  sums[dim * 3 + dim - 1] = 3e38f;
  std::vector<float> want = table;
  const StepScalars step = {3.0f, 0.1f, 0.7f};
  std::vector<uint8_t> outcomes(kRows, 9), want_outcomes(kRows, 9);
  uint32_t refused = 0;
  ApplyPlan plan;
  plan.task.table = {table.data(), stride};
  plan.task.state_offset = offset;
  plan.task.dim = dim;
  plan.task.rows.most = kRows;
  plan.task.sums = sums.data();
  plan.task.sum_stride = dim;
  plan.task.step = &step;
  plan.task.outcomes = outcomes.data();
  plan.task.refused = &refused;
  plan.rule.epsilon = config.epsilon;
  plan.rule.beta1 = config.beta1;
  plan.rule.beta2 = config.beta2;
  plan.rate_kind = config.kind == OptimizerKind::kAdam ? RateKind::kAdam : RateKind::kScheduled;
  plan.clip_value = config.clip_value;
  plan.clip_norm = config.clip_norm;
  plan.weight_decay = config.weight_decay;
  RunByLanes(Functor{plan});
  size_t want_refused = 0;
  for (uint32_t i = 0; i < kRows; ++i) {
    float* weights = want.data() + i * stride;
    float* state = weights + offset;
    want_refused += ApplyRows(config, step, dim, 1, &weights, &state, sums.data() + i * dim, dim,
                              &want_outcomes[i]);
  }
  INFO("kind " << int(config.kind) << ", dim " << dim << ", lanes " << Functor::kLanes << ", clip "
               << config.clip_norm);
  CHECK(Differences(table, want) == 0);
  CHECK(outcomes == want_outcomes);
  CHECK(refused == want_refused);
}

TEST_CASE("rows are updated alike by every shape of group", "[ops][cuda][exact]") {
  for (bool clipped : {false, true}) {
    for (OptimizerKind kind : {OptimizerKind::kRowwiseAdagrad, OptimizerKind::kAdam}) {
      OptimizerConfig config = Config(kind);
      if (clipped) {
        config.clip_value = 0.2f;
        config.clip_norm = 0.3f;
        config.weight_decay = 0.1f;
      }
      if (kind == OptimizerKind::kAdam) {
        CheckShape<ApplyQuads<rules::Adam, false, 4, 1, 2>>(config, 13);
        CheckShape<ApplyQuads<rules::Adam, false, 4, 4, 1>>(config, 50);
        CheckShape<ApplyQuads<rules::Adam, false, 8, 4, 1>>(config, 128);
        CheckShape<ApplyQuads<rules::Adam, false, 32, 1, 1>>(config, 300);
      } else {
        CheckShape<ApplyQuads<rules::Sgd, true, 4, 1, 2>>(config, 16);
        CheckShape<ApplyQuads<rules::Sgd, true, 4, 4, 1>>(config, 63);
        CheckShape<ApplyQuads<rules::Sgd, true, 4, 8, 1>>(config, 128);
        CheckShape<ApplyQuads<rules::Sgd, true, 32, 2, 1>>(config, 600);
      }
    }
  }
}

struct Counted {
  const uint32_t* values;
  uint32_t n;
  uint32_t* before;
  uint32_t* total;
  uint32_t items() const { return n; }
  uint32_t value(uint32_t i) const { return values[i]; }
  void emit(uint32_t i, uint32_t b, uint32_t) const { before[i] = b; }
  void finish(uint32_t t) const { *total = t; }
};

TEST_CASE("sums of integers before each, by 32 lanes", "[ops][cuda]") {
  for (uint32_t n : {1u, 31u, 1024u, 1025u, 40'000u}) {
    Random random(n);
    std::vector<uint32_t> values(n), before(n), tiles(ScanTiles(n)), want(n);
    for (uint32_t& x : values) x = random.Below(5);
    std::exclusive_scan(values.begin(), values.end(), want.begin(), 0u);
    uint32_t total = 0;
    const Counted source = {values.data(), n, before.data(), &total};
    RunByLanes(SumTiles<Counted>{source, tiles.data()});
    RunByLanes(ScanOverTiles<Counted>{source, tiles.data()});
    RunByLanes(EmitTiles<Counted>{source, tiles.data()});
    CHECK(before == want);
    CHECK(total == want.back() + values.back());
  }
}

}  // namespace
}  // namespace strata::ops::gpu

// The kernel that updates rows against ApplyRows, bit for bit.
#include "ops/cuda/rows/apply.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "ops/cuda/kernel/row_block.h"
#include "ops/optimizer.h"
#include "tests/ops/cuda/api/test_apis.h"
#include "tests/ops/optimizer_rows.h"

namespace strata::ops::gpu {
namespace {

using ops::testing::Config;
using ops::testing::kInfinity;
using ops::testing::kNan;
using ops::testing::Variants;
using testing::Apis;
using testing::DeviceVector;
using testing::Differences;
using testing::Random;
using testing::TestApi;

constexpr uint32_t kRows = 37;
constexpr uint32_t kSteps = 4;

// Floats between rows and before the state. Padded: to whole quads, as tables in device memory are.
struct Layout {
  uint32_t state_offset, stride;
  Layout(const OptimizerConfig& config, uint32_t dim, bool padded) {
    const uint32_t quad = padded ? 4 : 1;
    state_offset = (dim + quad - 1) / quad * quad;
    stride = state_offset + (StateFloats(config.kind, dim) + quad) / quad * quad;
  }
};

// Sums of all magnitudes; some rows are refused.
std::vector<float> Sums(uint32_t dim, uint32_t stride, uint32_t step, Random& random) {
  std::vector<float> sums(kRows * stride);
  for (size_t i = 0; i < sums.size(); ++i) {
    sums[i] = std::ldexp(random.Float(), static_cast<int>(i * 7 % 150) - 75);
  }
  if (step == 1) sums[2 * stride] = kNan;
  if (step == 2) sums[3 * stride + dim - 1] = kInfinity;
  if (step == 3) sums[4 * stride + dim / 2] = 3e38f;  // its square is infinite
  return sums;
}

struct Case {
  OptimizerConfig config;
  uint32_t dim;
  bool padded;
};

void CheckCase(TestApi& test, const Case& c) {
  const Layout layout(c.config, c.dim, c.padded);
  const uint32_t sum_stride = c.padded ? (c.dim + 3) / 4 * 4 : c.dim + 1;
  Random random(c.dim);
  std::vector<float> memory = random.Floats(2 * kRows * layout.stride);
  std::vector<uint32_t> row_of(kRows);
  for (uint32_t i = 0; i < kRows; ++i) {
    row_of[i] = (i * 29 + 5) % (2 * kRows);  // 29 and 74 have no common factor
    InitState(c.config, c.dim, memory.data() + row_of[i] * layout.stride + layout.state_offset);
  }
  row_of[7] = kNoRow;

  DeviceVector<float> table(test, memory);
  DeviceVector<uint32_t> rows(test, row_of);
  DeviceVector<StepScalars> scalars(test, 1);
  DeviceVector<float> sums_there(test, kRows * sum_stride);
  DeviceVector<uint8_t> outcomes_there(test, kRows + 1, uint8_t{9});
  DeviceVector<uint32_t> refused_there(test, 1, 0u);
  ApplyTask task;
  task.table = {table.get(), layout.stride};
  task.state_offset = layout.state_offset;
  task.dim = c.dim;
  task.row_of = rows.get();
  task.rows.most = kRows;
  task.sums = sums_there.get();
  task.sum_stride = sum_stride;
  task.step = scalars.get();
  task.outcomes = outcomes_there.get();
  task.refused = refused_there.get();

  AdamPowers powers(c.config.beta1, c.config.beta2);
  size_t refused = 0;
  for (uint32_t step = 0; step < kSteps; ++step) {
    const StepScalars scalar = {step % 2 == 0 ? 256.0f : 251.0f, 0.03f,
                                powers.Correction(step + 1)};
    const std::vector<float> sums = Sums(c.dim, sum_stride, step, random);
    sums_there.Set(sums);
    scalars.Set({scalar});
    REQUIRE(Apply(*test.api, c.config, task, test.stream.get()).ok());

    std::vector<uint8_t> outcomes(kRows + 1, 9);
    for (uint32_t i = 0; i < kRows; ++i) {
      outcomes[i] = 0;
      if (row_of[i] == kNoRow) continue;
      float* weights = memory.data() + row_of[i] * layout.stride;
      float* state = weights + layout.state_offset;
      refused += ApplyRows(c.config, scalar, c.dim, 1, &weights, &state,
                           sums.data() + i * sum_stride, sum_stride, &outcomes[i]);
    }
    CHECK(Differences(table.Get(), memory) == 0);
    CHECK(outcomes_there.Get() == outcomes);
    CHECK(refused_there.Get()[0] == refused);
  }
}

TEST_CASE("every optimizer updates rows as ApplyRows does, to the bit", "[ops][cuda][exact]") {
  for (TestApi& test : Apis()) {
    std::vector<OptimizerConfig> configs = Variants();
    configs.push_back(Config(OptimizerKind::kAdd));
    for (const OptimizerConfig& config : configs) {
      for (uint32_t dim : {1u, 2u, 3u, 4u, 5u, 8u, 16u, 17u, 31u, 32u, 64u, 100u, 128u, 129u, 256u,
                           512u, 513u, 700u}) {
        for (bool padded : {false, true}) {
          INFO(test.name << ", kind " << int(config.kind) << ", dim " << dim << ", clips "
                         << config.clip_value << " " << config.clip_norm << ", decay "
                         << config.weight_decay << ", padded " << padded);
          CheckCase(test, {config, dim, padded});
        }
      }
    }
  }
}

TEST_CASE("ftrl at a schedule's end leaves rows as they are", "[ops][cuda][exact]") {
  for (TestApi& test : Apis()) {
    const OptimizerConfig config = Config(OptimizerKind::kFtrl);
    std::vector<float> memory = Random(3).Floats(3 * 24);
    for (float& x : memory) x = std::fabs(x);  // n is a sum of squares
    DeviceVector<float> table(test, memory);
    DeviceVector<float> sums(test, Random(4).Floats(2 * 8));
    DeviceVector<StepScalars> scalars(test, std::vector<StepScalars>{{3.0f, 1e-19f, 1.0f}});
    DeviceVector<uint32_t> count(test, 1, 2u);
    ApplyTask task;
    task.table = {table.get(), 24};
    task.state_offset = 8;
    task.dim = 8;
    task.rows = {count.get(), 3};  // the device's count is what holds: two rows
    task.sums = sums.get();
    task.sum_stride = 8;
    task.step = scalars.get();
    REQUIRE(Apply(*test.api, config, task, test.stream.get()).ok());
    CHECK(Differences(table.Get(), memory) == 0);
    scalars.Set({{3.0f, 0.1f, 1.0f}});
    REQUIRE(Apply(*test.api, config, task, test.stream.get()).ok());
    const std::vector<float> after = table.Get();
    for (size_t i = 0; i < 48; ++i) CHECK(after[i] != memory[i]);
    for (size_t i = 48; i < 72; ++i) CHECK(after[i] == memory[i]);
    task.dim = 0;
    CHECK(Apply(*test.api, config, task, test.stream.get()).code() ==
          absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace strata::ops::gpu

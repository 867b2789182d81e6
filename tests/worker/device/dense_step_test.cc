// A lane's dense part on a device: the CPU's bits, one wait a step, and every call failing in turn.
#include "worker/device/dense_step.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "ops/cuda/api/api.h"
#include "tests/ops/cuda/api/failing_api.h"
#include "tests/ops/cuda/api/test_apis.h"
#include "worker/step/local_optimizer.h"

namespace strata {
namespace {

using ops::gpu::CallCounts;
using ops::gpu::testing::FailingApi;
using ops::gpu::testing::Random;

constexpr size_t kRows = 9;

TableSpec Table(OptimizerType type) {
  OptimizerSpec spec;
  spec.type = type;
  spec.learning_rate = 0.3f;
  spec.epsilon = 1e-3f;
  spec.initial_accumulator = 0.2f;
  spec.beta = 0.5f;
  spec.l1 = 0.05f;
  spec.l2 = 0.04f;
  spec.clip_norm = 1.5f;
  spec.schedule = {ScheduleType::kStep, 2, 7, 0.5f, 2.0f, 0.1f};
  TableSpec table;
  table.segments = {{"row", 20, {}, spec}};
  return table;
}

std::vector<float> Gradients(const TableSpec& table, uint64_t step) {
  std::vector<float> sums = Random(step).Floats(kRows * table.dim());
  if (step == 3) sums[2 * table.dim() + 1] = NAN;  // that row is refused
  return sums;
}

// LocalOptimizer's weights and counts after each step.
struct OnCpu {
  explicit OnCpu(const TableSpec& table) : local(table), table(table) {
    states.resize(kRows * local.state_floats());
    for (size_t r = 0; r < kRows; ++r) {
      weights_at.push_back(&weights[r * table.dim()]);
      states_at.push_back(states.data() + r * local.state_floats());
      local.InitState(states_at.back());
    }
  }
  LocalOptimizer::Counts Step(uint64_t step) {
    return local.Apply(step, 3, kRows, weights_at.data(), states_at.data(),
                       Gradients(table, step).data());
  }
  LocalOptimizer local;
  const TableSpec table;
  std::vector<float> weights = Random(99).Floats(kRows * 20), states;
  std::vector<float*> weights_at, states_at;
};

TEST_CASE("a dense part steps on a device as on the CPU, to the bit", "[worker][device][exact]") {
  for (ops::gpu::testing::TestApi& test : ops::gpu::testing::Apis()) {
    for (const OptimizerType type :
         {OptimizerType::kSgd, OptimizerType::kAdagrad, OptimizerType::kAdam,
          OptimizerType::kMomentum, OptimizerType::kRowwiseAdagrad, OptimizerType::kFtrl,
          OptimizerType::kAdd}) {
      INFO(test.name << ", type " << static_cast<int>(type));
      const TableSpec table = Table(type);
      auto there = device::MakeDenseStep(test.api.get(), table, kRows);
      REQUIRE(there.ok());
      OnCpu here(table);
      std::vector<float> weights = here.weights;
      const CallCounts before = test.api->counts();
      constexpr uint64_t kSteps = 8;
      for (uint64_t step = 1; step <= kSteps; ++step) {
        const LocalOptimizer::Counts right = here.Step(step);
        const auto counts = (*there)->Apply(step, 3, weights.data(), Gradients(table, step).data());
        REQUIRE(counts.ok());
        CHECK(counts->refused == right.refused);
        CHECK(counts->clipped == right.clipped);
        CHECK(right.refused == (step == 3 ? 1 : 0));
        CHECK(ops::gpu::testing::Differences(weights, here.weights) == 0);
      }
      const CallCounts after = test.api->counts();
      CHECK(after.allocations == before.allocations);
      CHECK(after.synchronisations - before.synchronisations == kSteps);
    }
  }
}

TEST_CASE("whichever call fails, a dense part's step ends with its error", "[worker][device]") {
  const TableSpec table = Table(OptimizerType::kAdam);
  const auto run = [&](ops::gpu::CudaApi* api) {
    auto dense = device::MakeDenseStep(api, table, kRows);
    if (!dense.ok()) return dense.status();
    std::vector<float> weights(kRows * table.dim());
    return (*dense)->Apply(1, 3, weights.data(), Gradients(table, 1).data()).status();
  };
  uint64_t calls = 0;
  {
    FailingApi api(UINT64_MAX);
    REQUIRE(run(&api).ok());
    calls = api.calls();
  }
  CHECK(calls > 15);
  for (uint64_t failing = 0; failing < calls; ++failing) {
    FailingApi api(failing, true);
    const absl::Status status = run(&api);
    INFO("call " << failing << " of " << calls);
    if (status.ok()) {
      CHECK(failing + 5 > calls);  // those that give back
    } else {
      CHECK(ops::gpu::IsDeviceLost(status));
    }
    CHECK(api.leaks() == 0);
  }
}

}  // namespace
}  // namespace strata

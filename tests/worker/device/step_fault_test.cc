// Steps on a device through the seam (ops/cuda/api/api.h): every call in turn fails, products too,
// and each time the step ends with that error and nothing is left behind; a steady step allocates
// nothing and waits once; memory has a bound.
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/api/host_api.h"
#include "ops/parallel.h"
#include "tests/ops/cuda/api/failing_api.h"
#include "tests/worker/device/device_problem.h"
#include "tests/worker/models/problem.h"
#include "worker/device/row_memory.h"
#include "worker/device/step.h"

namespace strata {
namespace {

using device::DeviceStep;
using device::RowMemory;
using ops::gpu::CallCounts;
using ops::gpu::HostApi;
using ops::gpu::IsDeviceLost;
using ops::gpu::testing::FailingApi;
using testing::DeviceShapes;
using testing::Problem;
using testing::ProblemThere;
using testing::ReadGradients;
using testing::SameBits;
using testing::Shape;
using testing::StepOptions;
using testing::StepResult;
using testing::TryRun;
using testing::TryRunStaging;

absl::Status TryPredict(const Problem& p, DeviceStep& step) {
  std::vector<const float*> tensors;
  for (const auto& t : p.tensors) tensors.push_back(t.data());
  std::vector<float> predictions(p.batch.size * p.tables.task_count());
  const auto parallel = ops::MakeParallel(1);
  return step.Predict({&p.batch, &p.routed, p.rows.data(), tensors}, predictions.data(),
                      parallel.get());
}

// Both slots' kinds alone, captured and as graphs; then predictions.
absl::StatusOr<StepResult> Steps(ops::gpu::CudaApi* api, const Problem& p) {
  auto step = DeviceStep::Make(p.tables, StepOptions(api, p));
  if (!step.ok()) return step.status();
  absl::StatusOr<StepResult> last;
  for (int turn = 0; turn < 3; ++turn) {
    last = TryRun(p, **step);
    if (!last.ok()) return last.status();
  }
  const auto same = std::make_shared<const Problem>(p);
  for (int turn = 0; turn < 2; ++turn) {
    last = TryRunStaging(*same, **step, same);
    if (!last.ok()) return last.status();
  }
  if (absl::Status s = TryPredict(p, **step); !s.ok()) return s;
  return last;
}

// The same with rows and their gradients on the device.
absl::StatusOr<StepResult> StepsThere(ops::gpu::CudaApi* api, const Problem& p, bool placed) {
  auto memory = RowMemory::Make(api, "host", nullptr);
  if (!memory.ok()) return memory.status();
  auto step = DeviceStep::Make(p.tables, StepOptions(api, p));
  if (!step.ok()) return step.status();
  auto there = ProblemThere::Make(p, memory->get(), placed);
  if (!there.ok()) return there.status();
  absl::StatusOr<StepResult> last;
  for (int turn = 0; turn < 3; ++turn) {
    last = TryRun(p, **step, *there);
    if (!last.ok()) return last.status();
  }
  if (absl::Status s = ReadGradients(*there, &*last); !s.ok()) return s;
  return last;
}

// run(api): whole, with everything made and given back.
template <typename RunAll>
void CheckEachCallFailing(const RunAll& run, const StepResult* expected) {
  uint64_t calls = 0;
  StepResult right;
  {
    FailingApi api(UINT64_MAX);
    const auto result = run(&api);
    REQUIRE(result.ok());
    right = *result;
    if (expected != nullptr) CHECK(SameBits(right, *expected));
    CHECK(api.leaks() == 0);
    calls = api.calls();
  }
  CHECK(calls > 100);
  for (uint64_t failing = 0; failing < calls; ++failing) {
    const bool lost = failing % 2 == 1;
    FailingApi api(failing, lost);
    int told = 0;
    api.WhenLost([&](const absl::Status& why) { told += IsDeviceLost(why); });
    const auto result = run(&api);
    INFO("call " << failing << " of " << calls);
    if (result.ok()) {
      // Of those that give everything back: nobody is failed by them.
      CHECK(SameBits(*result, right));
      CHECK(failing + 30 > calls);
    } else {
      CHECK_THAT(std::string(result.status().message()), Catch::Contains("injected"));
      CHECK(IsDeviceLost(result.status()) == lost);
    }
    CHECK(api.leaks() == 0);
    CHECK(told == (lost ? 1 : 0));
  }
}

TEST_CASE("whichever call of a step fails, it ends with that error and leaves nothing",
          "[worker][device]") {
  uint64_t seed = 50;
  for (const Shape& shape : DeviceShapes()) {
    INFO(testing::Describe(shape));
    const Problem p(shape, ++seed);
    HostApi api({});
    const auto right = Steps(&api, p);
    REQUIRE(right.ok());
    CheckEachCallFailing([&](FailingApi* failing) { return Steps(failing, p); }, nullptr);
    for (const bool placed : {false, true}) {
      INFO("rows on the device, placed: " << placed);
      CheckEachCallFailing([&](FailingApi* failing) { return StepsThere(failing, p, placed); },
                           &*right);
    }
  }
}

TEST_CASE("a steady step allocates nothing, waits once, and is one launch", "[worker][device]") {
  uint64_t seed = 90;
  for (const Shape& shape : DeviceShapes()) {
    INFO(testing::Describe(shape));
    const Problem p(shape, ++seed);
    HostApi api({});
    auto step = DeviceStep::Make(p.tables, StepOptions(&api, p));
    REQUIRE(step.ok());
    for (int turn = 0; turn < 3; ++turn) {
      REQUIRE(TryRun(p, **step).ok());
      REQUIRE(TryPredict(p, **step).ok());
    }
    constexpr uint64_t kSteps = 5;
    const CallCounts before = api.counts();
    for (uint64_t i = 0; i < kSteps; ++i) REQUIRE(TryRun(p, **step).ok());
    const CallCounts trained = api.counts();
    for (uint64_t i = 0; i < kSteps; ++i) REQUIRE(TryPredict(p, **step).ok());
    const CallCounts predicted = api.counts();
    CHECK(predicted.allocations == before.allocations);
    CHECK(trained.synchronisations - before.synchronisations == kSteps);
    CHECK(predicted.synchronisations - trained.synchronisations == kSteps);
    CHECK(trained.launches - before.launches == kSteps);
    CHECK(predicted.launches - trained.launches == kSteps);
    // The same where each step begins the next one's copies.
    const auto same = std::make_shared<const Problem>(p);
    for (int turn = 0; turn < 6; ++turn) REQUIRE(TryRunStaging(*same, **step, same).ok());
    const CallCounts first = api.counts();
    for (uint64_t i = 0; i < kSteps; ++i) REQUIRE(TryRunStaging(*same, **step, same).ok());
    const CallCounts staged = api.counts();
    CHECK(staged.allocations == first.allocations);
    CHECK(staged.synchronisations - first.synchronisations == kSteps);
    CHECK(staged.launches - first.launches == kSteps);
  }
}

TEST_CASE("a steady step whose rows stay on the device allocates nothing and waits once",
          "[worker][device]") {
  uint64_t seed = 130;
  for (const Shape& shape : DeviceShapes()) {
    INFO(testing::Describe(shape));
    const Problem p(shape, ++seed);
    HostApi api({});
    auto memory = RowMemory::Make(&api, "host", nullptr);
    REQUIRE(memory.ok());
    auto step = DeviceStep::Make(p.tables, StepOptions(&api, p));
    REQUIRE(step.ok());
    const auto right = TryRun(p, **step);
    REQUIRE(right.ok());
    for (const bool placed : {false, true}) {
      const auto there = ProblemThere::Make(p, memory->get(), placed);
      REQUIRE(there.ok());
      for (int turn = 0; turn < 3; ++turn) REQUIRE(TryRun(p, **step, *there).ok());
      constexpr uint64_t kSteps = 5;
      const CallCounts before = api.counts();
      for (uint64_t i = 0; i < kSteps; ++i) REQUIRE(TryRun(p, **step, *there).ok());
      const CallCounts after = api.counts();
      CHECK(after.allocations == before.allocations);
      CHECK(after.synchronisations - before.synchronisations == kSteps);
      // The graph and, where rows are placed, their gather: one, or of each table.
      const size_t gathers = p.tables.any_width() ? p.routed.runs.size() : 1;
      CHECK(after.launches - before.launches == kSteps * (placed ? 1 + gathers : 1));
      auto got = TryRun(p, **step, *there);
      REQUIRE(got.ok());
      REQUIRE(ReadGradients(*there, &*got).ok());
      CHECK(SameBits(*got, *right));
      // On the host again by the same graph.
      const auto again = TryRun(p, **step);
      REQUIRE(again.ok());
      CHECK(SameBits(*again, *right));
    }
  }
}

TEST_CASE("a batch beyond the device's memory is an error, and smaller ones go on",
          "[worker][device]") {
  Shape shape = {"deepfm", 6, 5, 8, {20, 12}, 60, 60, false};
  const Problem small(shape, 1);
  shape.batch = 6000;
  shape.unique = 5000;
  const Problem large(shape, 2);
  HostApi::Options limits;
  limits.device_bytes = size_t{1} << 20;
  HostApi api(limits);
  auto step = DeviceStep::Make(small.tables, StepOptions(&api, small));
  REQUIRE(step.ok());
  CHECK((*step)->device_bytes() > 0);
  CHECK((*step)->device_bytes() < limits.device_bytes);
  CHECK((*step)->pinned_bytes() > 0);
  const auto right = TryRun(small, **step);
  REQUIRE(right.ok());
  const absl::Status status = TryRun(large, **step).status();
  CHECK(status.code() == absl::StatusCode::kResourceExhausted);
  CHECK_THAT(std::string(status.message()), Catch::Contains("6000 examples"));
  CHECK_THAT(std::string(status.message()), Catch::Contains("spec.training.batchSize"));
  CHECK_THAT(std::string(status.message()), Catch::Contains("free"));
  const auto again = TryRun(small, **step);
  REQUIRE(again.ok());
  CHECK(SameBits(*again, *right));
  step->reset();
  CHECK(api.leaks() == 0);

  limits.device_bytes = 1000;
  HostApi tiny(limits);
  CHECK(DeviceStep::Make(small.tables, StepOptions(&tiny, small)).status().code() ==
        absl::StatusCode::kResourceExhausted);
  CHECK(tiny.leaks() == 0);
}

}  // namespace
}  // namespace strata

// Lanes on several threads take turns on one device.
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "ops/cuda/api/host_api.h"
#include "tests/worker/device/device_problem.h"
#include "tests/worker/models/problem.h"
#include "worker/device/step.h"

namespace strata {
namespace {

using device::DeviceStep;
using testing::Fields;
using testing::Problem;
using testing::SameBits;
using testing::Shape;
using testing::StepResult;
using testing::TryRun;
using testing::TryRunStaging;

TEST_CASE("lanes on several threads share the steps", "[worker][device]") {
  Shape shape = {"deepfm", 6, 5, 8, {20, 12}, 90, 60, false, Fields::kMulti};
  ops::gpu::HostApi api({});
  constexpr int kLanes = 4;
  std::vector<std::shared_ptr<const Problem>> problems;
  std::vector<StepResult> right;
  for (int lane = 0; lane < kLanes; ++lane) {
    shape.batch = 60 + 20 * static_cast<uint32_t>(lane);
    problems.push_back(std::make_shared<const Problem>(shape, lane + 1));
    const Problem& p = *problems.back();
    auto alone = DeviceStep::Make(p.tables, StepOptions(&api, p));
    REQUIRE(alone.ok());
    const auto result = TryRun(p, **alone);
    REQUIRE(result.ok());
    right.push_back(*result);
  }
  // Made for the smallest batch: the others make its memory larger while some are under way.
  auto options = StepOptions(&api, *problems[0]);
  options.batch_size = 10;  // which divides all
  auto step = DeviceStep::Make(problems[0]->tables, options);
  REQUIRE(step.ok());
  std::vector<int> wrong(kLanes);
  std::vector<std::thread> threads;
  for (int lane = 0; lane < kLanes; ++lane) {
    threads.emplace_back([&, lane] {
      for (int i = 0; i < 20; ++i) {
        // Sometimes the next one is staged, or that of another lane, which nobody will ask for.
        const int next = i % 3 == 0 ? lane : (lane + 1) % kLanes;
        const auto got = i % 2 == 0 ? TryRun(*problems[lane], **step)
                                    : TryRunStaging(*problems[lane], **step, problems[next]);
        wrong[lane] += !got.ok() || !SameBits(*got, right[lane]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int n : wrong) CHECK(n == 0);
  step->reset();
  CHECK(api.leaks() == 0);
}

}  // namespace
}  // namespace strata

// Steps on a device against the CPU's models.
#include "worker/device/step.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "ops/cuda/host_api.h"
#include "ops/parallel.h"
#include "tests/worker/device/device_problem.h"
#include "tests/worker/models/problem.h"
#include "worker/device/device_model.h"
#include "worker/models/models.h"

namespace strata {
namespace {

using device::DeviceStep;
using ops::gpu::HostApi;
using ops::gpu::MatmulPrecision;
using testing::DeviceShapes;
using testing::Error;
using testing::Fields;
using testing::Problem;
using testing::RunPredict;
using testing::SameBits;
using testing::Shape;
using testing::StepOptions;
using testing::StepResult;
using testing::TryRun;

// Sums of at most some thousand terms in another order than the CPU's, layer after layer.
constexpr double kTolerance = 2e-5;

StepResult RightResult(const Problem& p) {
  const auto parallel = ops::MakeParallel(1);
  const auto model = MakeModel(p.tables);
  REQUIRE(model.ok());
  return Run(p, **model, parallel.get());
}

std::vector<float> Predictions(const Problem& p, std::shared_ptr<DeviceStep> step) {
  const auto parallel = ops::MakeParallel(2);
  return RunPredict(p, *device::MakeDeviceModel(std::move(step)), parallel.get());
}

std::shared_ptr<DeviceStep> MakeStep(ops::gpu::CudaApi* api, const Problem& p,
                                     MatmulPrecision precision = MatmulPrecision::kFp32) {
  auto step = DeviceStep::Make(p.tables, StepOptions(api, p, precision));
  REQUIRE(step.ok());
  return *std::move(step);
}

TEST_CASE("every model on a device gives what it gives on the CPU", "[worker][device]") {
  uint64_t seed = 10;
  for (const Shape& shape : DeviceShapes()) {
    INFO(testing::Describe(shape));
    const Problem p(shape, ++seed);
    const StepResult right = RightResult(p);
    for (const size_t threads : {1, 3}) {
      HostApi::Options options;
      options.threads = threads;
      HostApi api(options);
      auto step = MakeStep(&api, p);
      // As kernels one by one, captured, and as a graph.
      for (int turn = 0; turn < 4; ++turn) {
        const auto got = TryRun(p, *step);
        REQUIRE(got.ok());
        std::string where;
        Error(*got, right, kTolerance, &where);
        CHECK(where == "");
      }
      CHECK(Error(Predictions(p, step), right.predictions) <= kTolerance);
      step.reset();
      CHECK(api.leaks() == 0);
    }
  }
}

TEST_CASE("lr and fm without numbers have the CPU's bits", "[worker][device][exact]") {
  for (const Shape& shape : DeviceShapes()) {
    if ((shape.type != "lr" && shape.type != "fm") || shape.numeric > 0) continue;
    INFO(testing::Describe(shape));
    const Problem p(shape, 77);
    const StepResult right = RightResult(p);
    HostApi api({});
    const auto got = TryRun(p, *MakeStep(&api, p));
    REQUIRE(got.ok());
    CHECK(SameBits(got->predictions, right.predictions));
    CHECK(SameBits(got->rows, right.rows));
  }
}

}  // namespace
}  // namespace strata

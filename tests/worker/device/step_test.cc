// Steps on a device against the CPU's models.
#include "worker/device/step.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/api/host_api.h"
#include "ops/cuda/api/memory.h"
#include "ops/cuda/products/blas.h"
#include "ops/cuda/products/split_blas.h"
#include "ops/parallel.h"
#include "tests/ops/cuda/api/test_apis.h"
#include "tests/ops/cuda/products/refusing_blas.h"
#include "tests/worker/device/device_problem.h"
#include "tests/worker/models/problem.h"
#include "tests/worker/models/products.h"
#include "worker/device/device_model.h"
#include "worker/device/row_memory.h"
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
using testing::TryRunStaging;

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

// As kernels one by one, captured, and as a graph.
void CheckAsOnCpu(const std::vector<Shape>& shapes) {
  uint64_t seed = 10;
  for (const Shape& shape : shapes) {
    INFO(testing::Describe(shape));
    const Problem p(shape, ++seed);
    const StepResult right = RightResult(p);
    for (ops::gpu::testing::TestApi& test : ops::gpu::testing::Apis()) {
      INFO(test.name);
      auto step = MakeStep(test.api.get(), p);
      for (int turn = 0; turn < 4; ++turn) {
        const auto got = TryRun(p, *step);
        REQUIRE(got.ok());
        std::string where;
        Error(*got, right, kTolerance, &where);
        CHECK(where == "");
      }
      CHECK(Error(Predictions(p, step), right.predictions) <= kTolerance);
    }
  }
}

TEST_CASE("every model on a device gives what it gives on the CPU", "[worker][device]") {
  CheckAsOnCpu(DeviceShapes());
}

TEST_CASE("so it does with every loss over every pooling", "[worker][device]") {
  CheckAsOnCpu(testing::LossesAndPoolings());
}

TEST_CASE("lr and fm without numbers have the CPU's bits, whatever the labels",
          "[worker][device][exact]") {
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
    CHECK(got->loss == right.loss);
  }
}

TEST_CASE("steps give the same bits whatever came before, on any number of threads",
          "[worker][device][exact]") {
  for (Shape shape : DeviceShapes()) {
    INFO(testing::Describe(shape));
    const Problem full(shape, 1);
    shape.batch = 11;
    const Problem small(shape, 2);
    shape.batch = 0;
    const Problem empty(shape, 3);
    shape.batch = 150;
    shape.unique = 130;
    const Problem large(shape, 4);
    StepResult first[4];
    for (const size_t threads : {1, 3}) {
      HostApi::Options options;
      options.threads = threads;
      HostApi api(options);
      auto step = MakeStep(&api, full);
      for (int turn = 0; turn < 3; ++turn) {
        int i = 0;
        // The small one by the full one's graph; after the large one memory is another.
        for (const Problem* p : {&full, &small, &empty, &large}) {
          const auto got = TryRun(*p, *step);
          REQUIRE(got.ok());
          StepResult& expected = first[i++];
          if (expected.rows.empty()) expected = *got;
          CHECK(SameBits(*got, expected));
        }
      }
    }
    CHECK(first[2].loss == 0);
    for (const float g : first[2].rows) CHECK(g == 0);
    for (const auto& tensor : first[2].tensors) {
      for (const float g : tensor) CHECK(g == 0);
    }
    for (const auto& [p, got] : {std::pair(&small, &first[1]), std::pair(&large, &first[3])}) {
      std::string where;
      Error(*got, RightResult(*p), kTolerance, &where);
      CHECK(where == "");
    }
  }
}

TEST_CASE("a batch that was staged gives the same bits, and so do others in its place",
          "[worker][device][exact]") {
  for (Shape shape : DeviceShapes()) {
    INFO(testing::Describe(shape));
    const auto make = [&shape](uint64_t seed) { return std::make_shared<Problem>(shape, seed); };
    const std::shared_ptr<const Problem> a = make(1), b = make(2), c = make(3);
    shape.batch = 150;
    shape.unique = 130;
    const std::shared_ptr<const Problem> large = make(4);
    HostApi api({});
    const auto alone = [&](const Problem& p) {
      auto got = TryRun(p, *MakeStep(&api, p));
      REQUIRE(got.ok());
      return *got;
    };
    auto step = MakeStep(&api, *a);
    const auto run = [&](const Problem& p, const std::shared_ptr<const Problem>& next) {
      const uint64_t waits = api.counts().synchronisations;
      const auto got = TryRunStaging(p, *step, next);
      REQUIRE(got.ok());
      const uint64_t waited = api.counts().synchronisations - waits;
      CHECK(SameBits(*got, alone(p)));
      return waited;
    };
    for (const auto& p : {a, b, c}) run(*p, nullptr);  // memory for each
    run(*a, b);
    CHECK(b.use_count() == 2);  // kept until it comes
    CHECK(run(*b, a) == 1);
    CHECK(b.use_count() == 1);
    run(*a, b);
    CHECK(run(*a, b) == 1);  // another one than was staged, in the other slot
    CHECK(run(*a, c) == 2);  // in the place of one whose copies may still be under way
    CHECK(b.use_count() == 1);
    CHECK(run(*c, a) == 1);
    run(*b, large);
    CHECK(large.use_count() == 1);  // it needs more memory, which its step takes
    run(*large, b);
    CHECK(run(*b, c) == 1);
    step = MakeStep(&api, *a);
    for (const auto& p : {a, b}) run(*p, nullptr);
    run(*a, b);
    CHECK(b.use_count() == 2);
    run(*large, nullptr);  // memory is made anew while b lies there
    CHECK(b.use_count() == 1);
    run(*b, nullptr);
  }
}

// The factors are rounded as before; only who multiplies is another.
TEST_CASE("a library without bf16 gives a step the same bits", "[worker][device]") {
  for (const Shape& shape : DeviceShapes()) {
    if (!testing::HasLayers(shape)) continue;
    INFO(testing::Describe(shape));
    const Problem p(shape, 5);
    HostApi api({});
    const auto right = TryRun(p, *MakeStep(&api, p, MatmulPrecision::kBf16));
    REQUIRE(right.ok());
    auto options = StepOptions(&api, p, MatmulPrecision::kBf16);
    int refused = 0;
    options.blas_bytes = ops::gpu::Blas::Options::kBytes;
    options.open_blas = [&](ops::gpu::Arena* arena) {
      return ops::gpu::MakeSplitBlas(arena, std::make_unique<ops::gpu::testing::RefusingBlas>(
                                                &api, MatmulPrecision::kBf16, &refused));
    };
    const auto step = DeviceStep::Make(p.tables, options);
    REQUIRE(step.ok());
    for (int turn = 0; turn < 3; ++turn) {  // by kernels, captured, and as a graph
      const auto got = TryRun(p, **step);
      REQUIRE(got.ok());
      CHECK(SameBits(*got, *right));
    }
    CHECK(refused > 0);
  }
}

// Notes what events were made for, and which were waited for.
class NotingApi : public HostApi {
 public:
  NotingApi() : HostApi(Options()) {}
  std::map<ops::gpu::EventHandle, ops::gpu::EventUse> uses;
  std::vector<ops::gpu::EventUse> waits;

 protected:
  absl::Status DoCreateEvent(ops::gpu::EventUse use, ops::gpu::EventHandle* out) override {
    const absl::Status status = HostApi::DoCreateEvent(use, out);
    if (status.ok()) uses[*out] = use;
    return status;
  }
  absl::Status DoSynchronizeEvent(ops::gpu::EventHandle event) override {
    waits.push_back(uses.at(event));
    return HostApi::DoSynchronizeEvent(event);
  }
};

TEST_CASE("a step sleeps while it waits for the device, and its events have no times",
          "[worker][device]") {
  const Problem p(DeviceShapes().front(), 6);
  NotingApi api;
  auto step = MakeStep(&api, p);
  REQUIRE(TryRun(p, *step).ok());
  CHECK_FALSE(api.uses.empty());
  for (const auto& [event, use] : api.uses) CHECK(use != ops::gpu::EventUse::kTiming);
  CHECK(api.waits == std::vector{ops::gpu::EventUse::kLongWait});
}

TEST_CASE("pinned memory for rows is taken when rows are copied, once", "[worker][device]") {
  const Problem p(DeviceShapes().front(), 6);
  HostApi api({});
  const auto memory = device::RowMemory::Make(&api, "host", nullptr);
  REQUIRE(memory.ok());
  const auto there = testing::ProblemThere::Make(p, memory->get(), /*placed=*/true);
  REQUIRE(there.ok());
  const auto options = StepOptions(&api, p);
  const device::StepBytes bytes =
      device::DeviceStepBytes(p.tables, options.precision, options.first_shape, 0);
  CHECK(bytes.pinned_rows >= 2 * 2 * p.routed.keys.size() * p.tables.row_dim() * sizeof(float));
  const auto step = MakeStep(&api, p);
  for (int turn = 0; turn < 2; ++turn) REQUIRE(TryRun(p, *step, *there).ok());
  CHECK(step->pinned_bytes() == bytes.pinned);
  (void)Predictions(p, step);  // rows come, no gradients go
  CHECK(step->pinned_bytes() == bytes.pinned + bytes.pinned_rows / 4);
  for (int turn = 0; turn < 2; ++turn) {
    REQUIRE(TryRun(p, *step).ok());
    CHECK(step->pinned_bytes() == bytes.pinned + bytes.pinned_rows / 2);  // of one slot
  }
  // More than the process may have is told, and harms nothing.
  HostApi scarce({});
  scarce.LimitPinned(bytes.pinned);
  const auto without = MakeStep(&scarce, p);
  const absl::Status refused = TryRun(p, *without).status();
  CHECK(refused.code() == absl::StatusCode::kResourceExhausted);
  CHECK_THAT(std::string(refused.message()), Catch::Contains("gradients of the model's rows: ") &&
                                                 Catch::Contains("--pinned-bytes"));
  scarce.LimitPinned(bytes.pinned + bytes.pinned_rows);
  CHECK(TryRun(p, *without).ok());
}

TEST_CASE("examples may have no features at all", "[worker][device]") {
  const std::vector<Shape> shapes = {{"lr", 0, 5, 0, {}, 40, 1, false, Fields::kSingle},
                                     {"fm", 0, 5, 6, {}, 40, 1, true, Fields::kSingle},
                                     {"deepfm", 0, 5, 6, {8}, 40, 1, false, Fields::kSingle}};
  for (const Shape& shape : shapes) {
    INFO(testing::Describe(shape));
    const Problem p(shape, 9);
    REQUIRE(p.batch.keys.empty());
    const StepResult right = RightResult(p);
    HostApi api({});
    auto step = MakeStep(&api, p);
    for (int turn = 0; turn < 3; ++turn) {
      const auto got = TryRun(p, *step);
      REQUIRE(got.ok());
      std::string where;
      Error(*got, right, kTolerance, &where);
      CHECK(where == "");
    }
  }
}

// How far off all of a gradient is, of its length.
double RelativeDistance(const std::vector<float>& got, const std::vector<float>& right) {
  double apart = 0, length = 0;
  for (size_t i = 0; i < right.size(); ++i) {
    apart += (double{got[i]} - right[i]) * (double{got[i]} - right[i]);
    length += double{right[i]} * right[i];
  }
  return length == 0 ? 0 : std::sqrt(apart / length);
}

TEST_CASE("products in TF32 and bf16 are as far off as their factors", "[worker][device]") {
  for (const Shape& shape : DeviceShapes()) {
    if (!testing::HasLayers(shape)) continue;
    constexpr double kMostBf16 = 0.3, kMostTf32 = 0.15;
    INFO(testing::Describe(shape));
    const Problem p(shape, 5);
    const StepResult right = RightResult(p);
    HostApi api({});
    // Single elements of gradients jump where a factor's rounding moves a sum through a ReLU's
    // zero; predictions do not, nor do whole gradients by much.
    const auto error = [&](MatmulPrecision precision) {
      const auto got = TryRun(p, *MakeStep(&api, p, precision));
      REQUIRE(got.ok());
      const double most = precision == MatmulPrecision::kBf16 ? kMostBf16 : kMostTf32;
      CHECK(RelativeDistance(got->rows, right.rows) < most);
      for (size_t t = 0; t < right.tensors.size(); ++t) {
        INFO("tensor " << t);
        CHECK(RelativeDistance(got->tensors[t], right.tensors[t]) < most);
      }
      return Error(got->predictions, right.predictions);
    };
    const double tf32 = error(MatmulPrecision::kTf32), bf16 = error(MatmulPrecision::kBf16);
    CHECK(tf32 > kTolerance);
    CHECK(tf32 < 0.01);
    CHECK(bf16 > tf32);
    CHECK(bf16 < 0.08);
  }
}

TEST_CASE("a batch of a job with weights may have none", "[worker][device]") {
  for (const Shape& shape : DeviceShapes()) {
    if (!shape.weighted) continue;
    INFO(testing::Describe(shape));
    Problem weighted(shape, 5), plain = weighted;
    plain.batch.weights.clear();
    HostApi api({});
    const auto step = MakeStep(&api, weighted);
    for (int turn = 0; turn < 4; ++turn) {  // graphs of both
      for (const Problem* p : {&weighted, &plain}) {
        const auto got = TryRun(*p, *step);
        REQUIRE(got.ok());
        std::string where;
        Error(*got, RightResult(*p), kTolerance, &where);
        CHECK(where == "");
      }
    }
  }
}

TEST_CASE("models that no device computes are refused", "[worker][device]") {
  const Problem p(DeviceShapes().front(), 6);
  HostApi api({});
  const auto refused = [&](const ModelTables& tables) {
    const absl::Status status = DeviceStep::Make(tables, StepOptions(&api, p)).status();
    CHECK(absl::IsFailedPrecondition(status));
    CHECK(status == device::CheckOnDevice(tables, p.batch.size));
    return std::string(status.message());
  };
  ModelTables tables = p.tables;
  tables.type = static_cast<ModelType>(77);
  CHECK(refused(tables) ==
        "spec.worker.device: models of this spec.model.type are computed on the CPU in this "
        "version; give cpu");
}

TEST_CASE("sequences with more rows than layers count are refused", "[worker][device]") {
  for (const Shape& shape : testing::WidthShapes()) {
    if (shape.sequences == 0) continue;
    const Problem p(shape, 6);
    HostApi api({});
    ModelTables tables = p.tables;
    SequenceShape& sequence = tables.sequences.back();
    sequence.max_length = UINT32_MAX / p.batch.size;
    CHECK(device::CheckOnDevice(tables, p.batch.size).ok());
    sequence.max_length = 1u << 30;
    const absl::Status status = DeviceStep::Make(tables, StepOptions(&api, p)).status();
    CHECK(status == device::CheckOnDevice(tables, p.batch.size));
    CHECK(status ==
          absl::FailedPreconditionError(
              "spec.fields: a batch has room for 53687091200 values of sequence '" + sequence.name +
              "' (maxLength 1073741824 x spec.training.batchSize 50), and a device "
              "counts 4294967295 at most; give a smaller maxLength or batchSize, or cpu "
              "for spec.worker.device"));
  }
}

// Products stand in gradients of the dense part alone.
TEST_CASE("models without layers round their numbers' products", "[worker][device]") {
  constexpr double kMost = 0.02;  // factors of 8 bits
  for (const Shape& shape : DeviceShapes()) {
    if (testing::HasLayers(shape) || shape.numeric == 0) continue;
    INFO(testing::Describe(shape));
    const Problem p(shape, 5);
    const StepResult right = RightResult(p);
    HostApi api({});
    const auto plain = TryRun(p, *MakeStep(&api, p));
    const auto got = TryRun(p, *MakeStep(&api, p, MatmulPrecision::kBf16));
    REQUIRE(got.ok());
    CHECK(SameBits(got->predictions, plain->predictions));
    CHECK(SameBits(got->rows, plain->rows));
    for (size_t t = 0; t < right.tensors.size(); ++t) {
      INFO("tensor " << t);
      CHECK(RelativeDistance(got->tensors[t], right.tensors[t]) < kMost);
    }
  }
}

}  // namespace
}  // namespace strata

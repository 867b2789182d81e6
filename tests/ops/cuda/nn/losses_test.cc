// Outputs of tasks against ops/nn/loss/losses.h and logistic.h, bit for bit.
#include "ops/cuda/nn/losses.h"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ops/nn/loss/logistic.h"
#include "ops/nn/loss/loss_terms.h"
#include "ops/nn/loss/losses.h"
#include "tests/ops/cuda/api/test_apis.h"

namespace strata::ops::gpu {
namespace {

using testing::Apis;
using testing::DeviceVector;
using testing::Differences;
using testing::Random;
using testing::TestApi;

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

TEST_CASE("a task of labels 0 and 1 has logistic.h's bits", "[ops][cuda][exact]") {
  std::vector<float> logits;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 65537 * 7) {
    const auto x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (std::isfinite(x)) logits.push_back(x);
  }
  Random random(1);
  for (int i = 0; i < 20'000; ++i) logits.push_back(random.Float() * 20);
  const auto n = static_cast<uint32_t>(logits.size());
  std::vector<float> labels(n), p(n), losses(n), gradients(n), p_alone(n);
  for (float& y : labels) y = static_cast<float>(random.Below(2));
  ops::LogisticLoss(n, logits.data(), labels.data(), p.data(), losses.data(), gradients.data());
  ops::Sigmoid(n, logits.data(), p_alone.data());
  const std::vector<Loss> tasks(1);
  for (TestApi& test : Apis()) {
    DeviceVector<float> x(test, logits), y(test, labels), a(test, n), b(test, n), c(test, n);
    DeviceVector<uint32_t> count(test, std::vector<uint32_t>{n});
    const TaskOutputs outputs = {tasks, n, {x.get(), 1}, a.get()};
    REQUIRE(TaskLosses(*test.api, outputs,
                       {count.get(), y.get(), nullptr, 1.0f, b.get(), {c.get(), 1}},
                       test.stream.get())
                .ok());
    CHECK(Differences(a.Get(), p) == 0);
    CHECK(Differences(b.Get(), losses) == 0);
    CHECK(Differences(c.Get(), gradients) == 0);
    REQUIRE(TaskPredictions(*test.api, outputs, test.stream.get()).ok());
    CHECK(Differences(a.Get(), p_alone) == 0);
  }
}

TEST_CASE("tasks of all kinds have losses.h's bits", "[ops][cuda][exact]") {
  constexpr uint32_t kExamples = 500, kCount = 470, kStride = 12;
  const std::vector<Loss> tasks = {
      {LossKind::kLogistic, 0.5f, 1.0f},      {LossKind::kSquared, 1.0f, 1.0f},
      {LossKind::kPoisson, 3.0f, 1.0f},       {LossKind::kHuber, 0.25f, 0.7f},
      {LossKind::kHuber, 1.0f, 2.0f},         {LossKind::kLogistic, 0.5f, 1.0f, -1.4f},
      {LossKind::kPoisson, 2.0f, 1.0f, 0.9f}, {LossKind::kSquared, 0.2f, 1.0f, 3.2f}};
  const auto n = static_cast<uint32_t>(tasks.size());
  constexpr float kScale = 0x1p+24f;
  Random random(4);
  std::vector<float> sums = random.Floats(kExamples * kStride), labels(kExamples * n);
  for (float& z : sums) z = z * 4;
  sums[3] = 400.0f;  // e^400 is infinite
  for (float& y : labels) y = random.Below(6) == 0 ? kNone : static_cast<float>(random.Below(2));
  std::vector<float> weights(kExamples);
  for (float& w : weights) w = static_cast<float>(random.Below(4)) * 0x1p-3f;
  weights[0] = 0.0f;
  for (const bool weighted : {false, true}) {
    std::vector<float> predictions(kExamples * n), costs(kExamples * n);
    std::vector<float> gradients(kExamples * kStride, 5.0f);
    for (uint32_t t = 0; t < n; ++t) {
      std::vector<float> z, p(kExamples), cost(kExamples), gradient(kExamples);
      for (uint32_t i = 0; i < kExamples; ++i) {
        z.push_back(sums[i * kStride + t]);
      }
      ops::TaskLosses(
          tasks[t],
          {kExamples, z.data(), labels.data() + t, n, weighted ? weights.data() : nullptr, kScale},
          p.data(), 1, cost.data(), gradient.data());
      for (uint32_t i = 0; i < kExamples; ++i) {
        predictions[i * n + t] = p[i];
        costs[i * n + t] = i < kCount ? cost[i] : 0.0f;
        gradients[i * kStride + t] = i < kCount ? gradient[i] : 0.0f;
      }
    }
    for (TestApi& test : Apis()) {
      INFO(test.name << ", weighted " << weighted);
      DeviceVector<float> z(test, sums), y(test, labels), w(test, weights);
      DeviceVector<float> p(test, predictions.size()), cost(test, costs.size());
      DeviceVector<float> gradient(test, gradients.size(), 5.0f);
      DeviceVector<uint32_t> count(test, std::vector<uint32_t>{kCount});
      const TaskOutputs outputs = {tasks, kExamples, {z.get(), kStride}, p.get()};
      REQUIRE(TaskLosses(*test.api, outputs,
                         {count.get(),
                          y.get(),
                          weighted ? w.get() : nullptr,
                          kScale,
                          cost.get(),
                          {gradient.get(), kStride}},
                         test.stream.get())
                  .ok());
      CHECK(Differences(p.Get(), predictions) == 0);
      CHECK(Differences(cost.Get(), costs) == 0);
      CHECK(Differences(gradient.Get(), gradients) == 0);
      p.Set(std::vector<float>(predictions.size(), kNone));
      REQUIRE(TaskPredictions(*test.api, outputs, test.stream.get()).ok());
      CHECK(Differences(p.Get(), predictions) == 0);
    }
  }
}

TEST_CASE("a sum that is no number leaves neither a loss nor a derivative", "[ops][cuda]") {
  const std::vector<Loss> tasks = {
      {LossKind::kLogistic}, {LossKind::kSquared}, {LossKind::kPoisson}, {LossKind::kHuber}};
  const auto n = static_cast<uint32_t>(tasks.size());
  for (TestApi& test : Apis()) {
    INFO(test.name);
    DeviceVector<float> z(test, std::vector<float>(n, kNone)), y(test, n, 1.0f), p(test, n);
    DeviceVector<float> cost(test, n), gradient(test, n);
    DeviceVector<uint32_t> count(test, std::vector<uint32_t>{1});
    REQUIRE(TaskLosses(*test.api, {tasks, 1, {z.get(), n}, p.get()},
                       {count.get(), y.get(), nullptr, 1.0f, cost.get(), {gradient.get(), n}},
                       test.stream.get())
                .ok());
    for (const std::vector<float>& got : {p.Get(), cost.Get(), gradient.Get()}) {
      for (const float x : got) CHECK(std::isnan(x));
    }
  }
}

TEST_CASE("more tasks than a kernel takes are refused", "[ops][cuda]") {
  TestApi test = std::move(Apis().front());
  const std::vector<Loss> tasks(kMostTasks + 1);
  const absl::Status refused = TaskPredictions(*test.api, {tasks, 1, {}, nullptr}, nullptr);
  CHECK(absl::IsInvalidArgument(refused));
  CHECK(std::string(refused.message()) == "65 tasks; a device takes at most 64");
  CHECK(absl::IsInvalidArgument(TaskLosses(*test.api, {tasks, 1, {}, nullptr}, {}, nullptr)));
}

}  // namespace
}  // namespace strata::ops::gpu

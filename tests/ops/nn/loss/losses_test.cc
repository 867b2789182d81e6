// Losses and their derivatives against the equations in double and their finite differences.
#include "ops/nn/loss/losses.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "ops/nn/loss/logistic.h"

namespace strata::ops {
namespace {

double LossOf(const Loss& loss, double sum, double y) {
  const double z = sum + double{loss.offset};
  switch (loss.kind) {
    case LossKind::kLogistic:
      return std::log1p(std::exp(-std::fabs(z))) + std::max(z, 0.0) - y * z;
    case LossKind::kSquared:
      return 0.5 * (z - y) * (z - y);
    case LossKind::kPoisson:
      return std::exp(z) - y * z;
    case LossKind::kHuber: {
      const double r = std::fabs(z - y);
      return r <= loss.delta ? 0.5 * r * r : loss.delta * (r - 0.5 * loss.delta);
    }
  }
  return 0;
}

double PredictionOf(const Loss& loss, double sum) {
  const double z = sum + double{loss.offset};
  if (loss.kind == LossKind::kLogistic) return 1 / (1 + std::exp(-z));
  return loss.kind == LossKind::kPoisson ? std::exp(z) : z;
}

constexpr LossKind kKinds[] = {LossKind::kLogistic, LossKind::kSquared, LossKind::kPoisson,
                               LossKind::kHuber};

// Of every kind, without an offset and with some.
std::vector<Loss> Losses() {
  std::vector<Loss> losses;
  for (const LossKind kind : kKinds) {
    losses.push_back({kind, 0.75f, 1.25f});
    for (const float offset : {-1.5f, 0.0f, 2.75f}) losses.push_back({kind, 0.75f, 1.25f, offset});
  }
  return losses;
}

TEST_CASE("losses and derivatives are those of the equations", "[ops]") {
  const std::vector<float> sums = {-9.5f, -2.25f, -1, -0.3f, 0, 0.01f, 0.7f, 1, 2.5f, 8};
  for (const Loss& loss : Losses()) {
    for (const float y : {0.0f, 1.0f, 3.0f}) {
      if (loss.kind == LossKind::kLogistic && y > 1) continue;
      const std::vector<float> labels(2 * sums.size(), y);
      const std::vector<float> weights(sums.size(), 3.0f);
      std::vector<float> predictions(3 * sums.size(), -7), losses(sums.size()), got(sums.size());
      TaskLosses(loss, {sums.size(), sums.data(), labels.data(), 2, weights.data()},
                 predictions.data(), 3, losses.data(), got.data());
      for (size_t i = 0; i < sums.size(); ++i) {
        INFO("kind " << static_cast<int>(loss.kind) << " offset " << loss.offset << " z " << sums[i]
                     << " y " << y);
        const double z = sums[i], step = 1e-5, scale = 0.75 * 3;
        CHECK(predictions[3 * i] == Approx(PredictionOf(loss, z)).epsilon(1e-6));
        CHECK(predictions[3 * i + 1] == -7);
        CHECK(losses[i] == Approx(scale * LossOf(loss, z, y)).epsilon(1e-6).margin(1e-6));
        const double difference =
            (LossOf(loss, z + step, y) - LossOf(loss, z - step, y)) / 2 / step;
        CHECK(got[i] == Approx(scale * difference).epsilon(1e-5).margin(1e-5));
      }
    }
  }
}

TEST_CASE("an example without a label, or of no weight, adds nothing", "[ops]") {
  constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> sums = {1, 2, 300, 2}, labels = {kNone, 1, 1, 1};
  const std::vector<float> weights = {1, 1, 0, 2};
  for (const Loss& loss : Losses()) {
    std::vector<float> predictions(4), losses(4, -1), gradients(4, -1);
    TaskLosses(loss, {4, sums.data(), labels.data(), 1, weights.data()}, predictions.data(), 1,
               losses.data(), gradients.data());
    CHECK((losses[0] == 0 && gradients[0] == 0));
    CHECK(predictions[0] == Approx(PredictionOf(loss, 1)));
    CHECK((losses[2] == 0 && gradients[2] == 0));  // where e^300 would be infinite
    CHECK((losses[3] == 2 * losses[1] && gradients[3] == 2 * gradients[1]));
    std::vector<float> alone(4);
    TaskPredictions(loss, 4, sums.data(), alone.data(), 1);
    CHECK(std::memcmp(alone.data(), predictions.data(), sizeof(float) * 4) == 0);
  }
}

TEST_CASE("weights count by their scale in derivatives alone", "[ops]") {
  constexpr float kScale = 0x1p+24f;
  const std::vector<float> sums = {-1, 0.3f, 2, -1e16f}, labels = {1, 0, 1, 1e16f};
  const std::vector<float> weights = {1, 0.5f, 0, 1}, ones(4, 1.0f);
  for (const Loss& loss : Losses()) {
    std::vector<float> p(4), losses(4), got(4), plain_losses(4), plain(4);
    TaskLosses(loss, {4, sums.data(), labels.data(), 1, weights.data(), kScale}, p.data(), 1,
               losses.data(), got.data());
    TaskLosses(loss, {4, sums.data(), labels.data(), 1, nullptr, kScale}, p.data(), 1,
               plain_losses.data(), plain.data());
    for (size_t i = 0; i < 4; ++i) {
      INFO("kind " << static_cast<int>(loss.kind) << " i " << i);
      if (weights[i] > 0) CHECK(std::isfinite(losses[i]));  // whose scale would be beyond floats
      CHECK(losses[i] == weights[i] * plain_losses[i]);
      CHECK(got[i] == kScale * weights[i] * plain[i]);
    }
  }
}

TEST_CASE("a sum that is no number leaves neither a loss nor a derivative", "[ops]") {
  const std::vector<float> sums = {std::numeric_limits<float>::quiet_NaN()}, labels = {1};
  for (const Loss& loss : Losses()) {
    INFO("kind " << static_cast<int>(loss.kind) << " offset " << loss.offset);
    float prediction = 0, cost = 0, gradient = 0;
    TaskLosses(loss, {1, sums.data(), labels.data(), 1, nullptr}, &prediction, 1, &cost, &gradient);
    CHECK(std::isnan(prediction));
    CHECK(std::isnan(cost));
    CHECK(std::isnan(gradient));
  }
}

TEST_CASE("a loss without an offset leaves a sum its bits, a negative zero too", "[ops]") {
  const std::vector<float> sums = {-0.0f, 0.0f, 0x1p-149f, -0x1p-149f, -3e38f, 3e38f};
  for (const LossKind kind : {LossKind::kSquared, LossKind::kHuber}) {
    std::vector<float> predictions(sums.size());
    TaskPredictions({kind}, sums.size(), sums.data(), predictions.data(), 1);
    CHECK(std::memcmp(predictions.data(), sums.data(), sizeof(float) * sums.size()) == 0);
  }
}

TEST_CASE("one binary label without weights has the bits of logistic.h", "[ops]") {
  std::vector<float> sums, labels;
  for (int i = 0; i < 1000; ++i) {
    sums.push_back(static_cast<float>(i - 500) * 0.037f);
    labels.push_back(static_cast<float>(i % 3 == 0));
  }
  std::vector<float> p(1000), l(1000), g(1000), p2(1000), l2(1000), g2(1000);
  LogisticLoss(1000, sums.data(), labels.data(), p.data(), l.data(), g.data());
  TaskLosses({}, {1000, sums.data(), labels.data(), 1, nullptr}, p2.data(), 1, l2.data(),
             g2.data());
  CHECK(std::memcmp(p.data(), p2.data(), 4000) == 0);
  CHECK(std::memcmp(l.data(), l2.data(), 4000) == 0);
  CHECK(std::memcmp(g.data(), g2.data(), 4000) == 0);
}

}  // namespace
}  // namespace strata::ops

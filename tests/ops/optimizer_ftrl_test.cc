#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "ops/optimizer.h"
#include "tests/ops/optimizer_rows.h"

namespace strata::ops {
namespace {

using testing::ApplyOne;
using testing::Config;
using testing::kDims;
using testing::kNan;
using testing::SameBits;
using testing::Values;

TEST_CASE("ftrl makes exact zeros, and leaves them again", "[ops][optimizer]") {
  OptimizerConfig config = Config(OptimizerKind::kFtrl);
  config.l1 = 1.0f;
  for (uint32_t dim : kDims) {
    std::vector<float> w(dim, 0.0f), state(2 * dim, 0.0f), g(dim, 0.25f);
    const StepScalars scalars = {1.0f, 0.1f, 1.0f};
    for (int step = 0; step < 4; ++step) {  // z reaches l1 and does not pass it
      REQUIRE(ApplyOne(config, scalars, w, state, g) == 0);
      for (float x : w) REQUIRE((x == 0.0f && !std::signbit(x)));
    }
    REQUIRE(state[0] == 1.0f);
    ApplyOne(config, scalars, w, state, g);
    for (float x : w) REQUIRE(x < 0.0f);
    g.assign(dim, -0.5f);
    ApplyOne(config, scalars, w, state, g);
    for (float x : w) REQUIRE(x == 0.0f);
    for (int step = 0; step < 6; ++step) ApplyOne(config, scalars, w, state, g);
    for (float x : w) REQUIRE(x > 0.0f);
  }
}

// The paper's general form: sigma is the growth of 1/eta, and alpha may differ in every step.
TEST_CASE("ftrl follows a schedule without pulling weights to zero", "[ops][optimizer]") {
  OptimizerConfig config = Config(OptimizerKind::kFtrl);
  config.l1 = 0.4f;
  constexpr uint32_t kDim = 40;
  std::vector<float> w(kDim), state(2 * kDim, 0.0f), g(kDim);
  Values values(9);
  values.Fill(w);
  for (uint32_t d = 0; d < 10; ++d) w[d] = 0.0f;
  const double beta = config.beta, l1 = config.l1, l2 = config.l2;
  std::vector<double> x(w.begin(), w.end()), z(kDim, 0.0), n(kDim, 0.0), inverse(kDim);
  for (int step = 0; step < 200; ++step) {
    const float rate = step == 0 ? 0.2f : 0.2f * (1.0f - static_cast<float>(step) / 200);
    values.Fill(g);
    for (uint32_t d = 0; d < kDim; ++d) {
      if (step == 0) {
        inverse[d] = beta / rate;
        z[d] = x[d] == 0 ? 0 : -x[d] * (inverse[d] + l2) - (x[d] > 0 ? l1 : -l1);
      }
      n[d] += double{g[d]} * g[d];
      const double now = (beta + std::sqrt(n[d])) / rate;
      z[d] += g[d] - (now - inverse[d]) * x[d];
      inverse[d] = now;
      x[d] = std::abs(z[d]) <= l1 ? 0 : -(z[d] - (z[d] > 0 ? l1 : -l1)) / (now + l2);
    }
    REQUIRE(ApplyOne(config, {1.0f, rate, 1.0f}, w, state, g) == 0);
    for (uint32_t d = 0; d < kDim; ++d) REQUIRE(w[d] == Approx(x[d]).epsilon(0).margin(3e-6));
  }
  // Without a gradient and without l2 a weight stands still, whatever the rate does; at the rate 0
  // of a schedule's end everything does, and what is not finite is still refused.
  config.l2 = 0.0f;
  const std::vector<float> before = w;
  for (float rate : {0.2f, 1e-3f, 1e-9f}) {
    ApplyOne(config, {1.0f, rate, 1.0f}, w, state, std::vector<float>(kDim, 0.0f));
  }
  for (uint32_t d = 0; d < kDim; ++d) REQUIRE(w[d] == Approx(before[d]).epsilon(1e-6));
  for (float rate : {0.0f, 1e-30f, 1e-19f}) {
    const std::vector<float> weights = w, states = state;
    REQUIRE(ApplyOne(config, {1.0f, rate, 1.0f}, w, state, g) == 0);
    REQUIRE(SameBits(w, weights));
    REQUIRE(SameBits(state, states));
    std::vector<float> bad = g;
    bad[17] = kNan;
    REQUIRE(ApplyOne(config, {1.0f, rate, 1.0f}, w, state, bad) == kRowRefused);
  }
}

TEST_CASE("ftrl keeps a small weight's precision beside a large l1", "[ops][optimizer]") {
  OptimizerConfig config = Config(OptimizerKind::kFtrl);
  config.l1 = 1000.0f;
  config.l2 = 0.0f;
  std::vector<float> w = {1e-4f, -1e-4f}, state(4, 0.0f);
  ApplyOne(config, {1.0f, 0.1f, 1.0f}, w, state, {0.0f, 0.0f});
  CHECK(w[0] == Approx(1e-4f).epsilon(1e-6));
  CHECK(w[1] == Approx(-1e-4f).epsilon(1e-6));
}

}  // namespace
}  // namespace strata::ops

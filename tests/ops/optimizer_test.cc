#include "ops/optimizer.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <vector>

#include "ops/schedule.h"
#include "tests/ops/optimizer_reference.h"
#include "tests/ops/optimizer_rows.h"

namespace strata::ops {
namespace {

using testing::ApplyOne;
using testing::Config;
using testing::kDims;
using testing::kInfinity;
using testing::Reference;
using testing::Rows;
using testing::SameBits;
using testing::Values;
using testing::Variants;

TEST_CASE("state sizes and initial state", "[ops][optimizer]") {
  CHECK(StateFloats(OptimizerKind::kSgd, 17) == 0);
  CHECK(StateFloats(OptimizerKind::kAdagrad, 17) == 17);
  CHECK(StateFloats(OptimizerKind::kAdam, 17) == 34);
  CHECK(StateFloats(OptimizerKind::kMomentum, 17) == 17);
  CHECK(StateFloats(OptimizerKind::kFtrl, 17) == 34);
  CHECK(StateFloats(OptimizerKind::kAdd, 17) == 0);
  // 4 bytes a row, whatever its width.
  for (uint32_t dim : kDims) CHECK(StateFloats(OptimizerKind::kRowwiseAdagrad, dim) == 1);
  OptimizerConfig config = Config(OptimizerKind::kAdagrad);
  config.initial_accumulator = 0.25f;
  std::vector<float> state(17, -1.0f);
  InitState(config, 17, state.data());
  CHECK(state == std::vector<float>(17, 0.25f));
  config.kind = OptimizerKind::kRowwiseAdagrad;
  state.assign(2, -1.0f);
  InitState(config, 17, state.data());
  CHECK(state == std::vector<float>{0.25f, -1.0f});
  config.kind = OptimizerKind::kAdam;
  state.assign(34, -1.0f);
  InitState(config, 17, state.data());
  CHECK(state == std::vector<float>(34, 0.0f));
}

TEST_CASE("optimizers follow their equations", "[ops][optimizer]") {
  constexpr size_t kRows = 37;
  constexpr float kExamples[] = {1.0f, 48.0f, 4096.0f};
  for (const OptimizerConfig& config : Variants()) {
    for (uint32_t dim : kDims) {
      Rows rows(config, dim, kRows);
      Reference reference(config, dim, rows);
      AdamPowers powers(config.beta1, config.beta2);
      const size_t gradient_stride = dim + 3;
      Values values(dim + 1);
      for (uint64_t t = 1; t <= 12; ++t) {
        const float examples = kExamples[t % 3];
        std::vector<float> sums(kRows * gradient_stride);
        values.Fill(sums);
        for (float& x : sums) x *= examples;
        std::vector<std::vector<double>> g(kRows);
        for (size_t i = 0; i < kRows; ++i) {
          for (uint32_t d = 0; d < dim; ++d) {
            g[i].push_back(static_cast<double>(sums[i * gradient_stride + d]) / examples);
          }
        }
        reference.Step(g, static_cast<double>(0.05f), t);
        const StepScalars scalars{examples, 0.05f, powers.Correction(t)};
        std::vector<uint8_t> outcomes(kRows, 9);
        CHECK(ApplyRows(config, scalars, dim, kRows, rows.weights.data(), rows.states.data(),
                        sums.data(), gradient_stride, outcomes.data()) == 0);
        CHECK(std::count(outcomes.begin(), outcomes.end(), kRowRefused) == 0);
      }
      // Twelve steps of a few roundings each, relative to the value (ftrl's z: up to 40 x w).
      double worst = 0;
      const auto compare = [&worst](double is, double should) {
        worst = std::max(worst, std::abs(is - should) / std::max(1.0, std::abs(should)));
      };
      for (size_t i = 0; i < kRows; ++i) {
        for (uint32_t d = 0; d < dim; ++d) compare(rows.weights[i][d], reference.weights[i][d]);
        for (size_t d = 0; d < reference.states[i].size(); ++d) {
          compare(rows.states[i][d], reference.states[i][d]);
        }
        CHECK(rows.memory[i * rows.stride + rows.stride - 1] == 7.0f);
      }
      INFO("kind " << static_cast<int>(config.kind) << " dim " << dim << " clips "
                   << config.clip_value << " " << config.clip_norm);
      CHECK(worst < 3e-6);
    }
  }
}

TEST_CASE("lazy adam equals dense adam when every row is touched every step", "[ops][optimizer]") {
  // The dense form keeps running powers and bias-corrected moments (Kingma and Ba, 2015,
  // algorithm 1, with epsilon outside the correction as in its section 2).
  const OptimizerConfig config = Config(OptimizerKind::kAdam);
  constexpr uint32_t kDim = 24;
  Rows rows(config, kDim, 5);
  std::vector<double> w, m(5 * kDim), v(5 * kDim);
  for (float* row : rows.weights) w.insert(w.end(), row, row + kDim);
  AdamPowers powers(config.beta1, config.beta2);
  Values values(3);
  double p1 = 1, p2 = 1;
  for (uint64_t t = 1; t <= 100; ++t) {
    std::vector<float> g(5 * kDim);
    values.Fill(g);
    p1 *= config.beta1;
    p2 *= config.beta2;
    for (size_t i = 0; i < w.size(); ++i) {
      m[i] += (1 - static_cast<double>(config.beta1)) * (g[i] - m[i]);
      v[i] += (1 - static_cast<double>(config.beta2)) * (double{g[i]} * g[i] - v[i]);
      const double eps = config.epsilon / std::sqrt(1 - p2);
      w[i] -= 0.001f * (m[i] / (1 - p1)) / (std::sqrt(v[i] / (1 - p2)) + eps);
    }
    ApplyRows(config, {1.0f, 0.001f, powers.Correction(t)}, kDim, 5, rows.weights.data(),
              rows.states.data(), g.data(), kDim, nullptr);
  }
  for (size_t i = 0; i < w.size(); ++i) {
    CHECK(rows.weights[i / kDim][i % kDim] == Approx(w[i]).epsilon(0).margin(2e-6));
  }
}

TEST_CASE("an untouched row keeps its bits under lazy adam", "[ops][optimizer]") {
  const OptimizerConfig config = Config(OptimizerKind::kAdam);
  Rows rows(config, 16, 2);
  std::vector<float> g(16, 0.5f);
  ApplyRows(config, {1.0f, 0.1f, 1.0f}, 16, 2, rows.weights.data(), rows.states.data(), g.data(), 0,
            nullptr);
  const std::vector<float> before = rows.memory;
  ApplyRows(config, {1.0f, 0.1f, 1.0f}, 16, 1, rows.weights.data(), rows.states.data(), g.data(), 0,
            nullptr);
  CHECK(std::memcmp(before.data() + rows.stride, rows.memory.data() + rows.stride,
                    rows.stride * 4) == 0);
  CHECK_FALSE(SameBits(before, rows.memory));
}

TEST_CASE("adagrad's accumulator never falls", "[ops][optimizer]") {
  const OptimizerConfig config = Config(OptimizerKind::kAdagrad);
  for (uint32_t dim : kDims) {
    Rows rows(config, dim, 9);
    Values values(dim);
    for (int step = 0; step < 60; ++step) {
      std::vector<float> g(9 * dim);
      values.Fill(g);
      // From denormal squares to large ones.
      for (float& x : g) x = std::ldexp(x, step * 2 - 80);
      const std::vector<float> before = rows.memory;
      REQUIRE(ApplyRows(config, {1.0f, 0.01f, 1.0f}, dim, 9, rows.weights.data(),
                        rows.states.data(), g.data(), dim, nullptr) == 0);
      bool fell = false;
      for (size_t i = 0; i < 9; ++i) {
        for (uint32_t d = 0; d < dim; ++d) {
          fell |= !(rows.states[i][d] >= before[i * rows.stride + dim + d]);
        }
      }
      REQUIRE_FALSE(fell);
    }
  }
}

TEST_CASE("the mean is the correctly rounded quotient, powers of two included",
          "[ops][optimizer]") {
  // With rate -1 from weight 0, sgd leaves the mean itself in the weight.
  const OptimizerConfig config = Config(OptimizerKind::kSgd);
  std::vector<float> sums = {1e-45f, 3e-45f, 1.1e-38f, 1.0f / 3, 3.0f, 1e38f, -1e-40f, 12345.678f};
  for (float examples : {1.0f, 2.0f, 3.0f, 64.0f, 1000.0f, 32768.0f, 0x1p40f}) {
    std::vector<float> w(8, 0.0f);
    float* row = w.data();
    REQUIRE(ApplyRows(config, {examples, -1.0f, 1.0f}, 8, 1, &row, nullptr, sums.data(), 8,
                      nullptr) == 0);
    for (size_t i = 0; i < 8; ++i) CHECK(w[i] == sums[i] / examples);
  }
}

TEST_CASE("adam's powers", "[ops][optimizer]") {
  AdamPowers powers(0.9f, 0.999f);
  double p1 = 1, p2 = 1;
  std::vector<float> by_step(1);
  for (uint64_t t = 1; t <= 5000; ++t) {
    p1 *= static_cast<double>(0.9f);
    p2 *= static_cast<double>(0.999f);
    by_step.push_back(static_cast<float>(std::sqrt(1 - p2) / (1 - p1)));
    REQUIRE(powers.Correction(t) == by_step[t]);
  }
  // Asked again, back, and with a jump: the same numbers.
  CHECK(powers.Correction(5000) == by_step[5000]);
  CHECK(powers.Correction(17) == by_step[17]);
  CHECK(powers.Correction(4001) == by_step[4001]);
  CHECK(AdamPowers(0.9f, 0.999f).Correction(4001) == by_step[4001]);
  // A very late step is reached at once, because the powers have become constant.
  CHECK(powers.Correction(uint64_t{1} << 62) == 1.0f);
  CHECK(AdamPowers(0.0f, 0.0f).Correction(3) == 1.0f);
}

TEST_CASE("rowwise adagrad's accumulator never falls and is the mean of squares",
          "[ops][optimizer]") {
  const OptimizerConfig config = Config(OptimizerKind::kRowwiseAdagrad);
  for (uint32_t dim : kDims) {
    std::vector<float> w(dim, 0.0f), state(1, 0.0f), g(dim);
    Values values(dim);
    double sum = 0;
    for (int step = 0; step < 30; ++step) {
      values.Fill(g);
      double squares = 0;
      for (float x : g) squares += double{x} * x;
      sum += squares / dim;
      const float before = state[0];
      REQUIRE(ApplyOne(config, {1.0f, 0.1f, 1.0f}, w, state, g) == 0);
      REQUIRE(state[0] >= before);
      REQUIRE(state[0] == Approx(sum).epsilon(1e-5));
    }
  }
}

TEST_CASE("add adds, and does nothing else", "[ops][optimizer]") {
  OptimizerConfig config = Config(OptimizerKind::kAdd);
  config.clip_norm = 0.1f;
  config.clip_value = 0.1f;
  config.weight_decay = 0.5f;
  for (uint32_t dim : kDims) {
    Values values(dim);
    std::vector<float> w(dim), none, g(dim), expected;
    values.Fill(w);
    values.Fill(g);
    for (uint32_t d = 0; d < dim; ++d) expected.push_back(w[d] + g[d]);
    CHECK(ApplyOne(config, {64.0f, 0.0f, 1.0f}, w, none, g) == 0);
    CHECK(SameBits(w, expected));
    CHECK(ApplyOne(config, {0.0f, 0.0f, 1.0f}, w, none, g) == 0);  // no examples: no division
    g[dim / 2] = kInfinity;
    expected = w;
    CHECK(ApplyOne(config, {1.0f, 0.0f, 1.0f}, w, none, g) == kRowRefused);
    CHECK(SameBits(w, expected));
  }
}

TEST_CASE("more rows than are prepared at a time", "[ops][optimizer]") {
  OptimizerConfig config = Config(OptimizerKind::kAdagrad);
  config.clip_norm = 1.0f;
  for (uint32_t dim : {1u, 16u, 700u, 5000u}) {
    const size_t n = 3 * (4096 / dim + 1) + 2;
    Rows together(config, dim, n), apart(config, dim, n);
    std::vector<float> sums(n * dim);
    Values(dim).Fill(sums);
    ApplyRows(config, {0.5f, 0.1f, 1.0f}, dim, n, together.weights.data(), together.states.data(),
              sums.data(), dim, nullptr);
    for (size_t i = 0; i < n; ++i) {
      ApplyRows(config, {0.5f, 0.1f, 1.0f}, dim, 1, apart.weights.data() + i,
                apart.states.data() + i, sums.data() + i * dim, dim, nullptr);
    }
    CHECK(SameBits(together.memory, apart.memory));
  }
}

TEST_CASE("scalars depend on the commit's number alone", "[ops][optimizer]") {
  OptimizerConfig config = Config(OptimizerKind::kAdam);
  config.learning_rate = 0.3f;
  ScalarSource constant(config);
  CHECK(constant.At(1, 7).learning_rate == 0.3f);
  CHECK(constant.At(1, 9).examples == 9.0f);
  config.schedule = {.kind = ScheduleKind::kCosine, .warmup_steps = 3, .decay_steps = 40};
  ScalarSource ascending(config);
  std::vector<StepScalars> all(1);
  for (uint64_t number = 1; number <= 60; ++number) all.push_back(ascending.At(number, number));
  CHECK(all[1].learning_rate == 0.1f);  // the first of three steps of warm-up
  CHECK(all[3].learning_rate == 0.3f);
  CHECK(all[4].learning_rate == 0.3f);
  CHECK(all[5].learning_rate < 0.3f);
  CHECK(all[44].learning_rate == 0.0f);
  for (uint64_t number : {60, 1, 17, 18, 44, 2}) {
    const StepScalars again = ascending.At(number, 5), fresh = ScalarSource(config).At(number, 5);
    CHECK(again.learning_rate == all[number].learning_rate);
    CHECK(again.adam_correction == all[number].adam_correction);
    CHECK(fresh.learning_rate == all[number].learning_rate);
    CHECK(fresh.adam_correction == all[number].adam_correction);
  }
}

}  // namespace
}  // namespace strata::ops

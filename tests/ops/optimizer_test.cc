#include "ops/optimizer.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "ops/cpu_features.h"
#include "ops/schedule.h"
#include "tests/ops/golden_hash.h"

namespace strata::ops {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr OptimizerKind kKinds[] = {
    OptimizerKind::kSgd,  OptimizerKind::kAdagrad,        OptimizerKind::kAdam,
    OptimizerKind::kFtrl, OptimizerKind::kRowwiseAdagrad, OptimizerKind::kMomentum};
// Covers every code path: scalars, specialised, odd, one block exactly, several blocks.
constexpr uint32_t kDims[] = {1,  2,  3,   4,   5,   7,   8,   16,  17,  31,
                              32, 33, 100, 128, 129, 255, 256, 257, 300, 700};

// Deterministic values in [-1, 1).
class Values {
 public:
  explicit Values(uint32_t seed) : state_(seed * 2654435761u + 1) {}
  float Next() {
    state_ = state_ * 1664525u + 1013904223u;
    return static_cast<float>(static_cast<int32_t>(state_)) * 0x1p-31f;
  }
  void Fill(std::vector<float>& out) {
    for (float& x : out) x = Next();
  }

 private:
  uint32_t state_;
};

// Rows in one block of memory, state right after the weights, with a guard float after each row.
struct Rows {
  Rows(const OptimizerConfig& config, uint32_t dim, size_t n) : n(n) {
    const uint32_t state = StateFloats(config.kind, dim);
    stride = dim + state + 1;
    memory.assign(n * stride, 7.0f);
    Values values(dim);
    for (size_t i = 0; i < n; ++i) {
      float* row = memory.data() + i * stride;
      for (uint32_t d = 0; d < dim; ++d) row[d] = values.Next();
      InitState(config, dim, row + dim);
      weights.push_back(row);
      states.push_back(row + dim);
    }
  }
  size_t n, stride;
  std::vector<float> memory;
  std::vector<float*> weights, states;
};

OptimizerConfig Config(OptimizerKind kind) {
  OptimizerConfig config;
  config.kind = kind;
  config.epsilon = kind == OptimizerKind::kAdam ? 1e-8f : 1e-10f;
  config.l1 = 0.3f;  // so that gradients around 1 make both zeros and other weights
  config.l2 = 0.2f;
  return config;
}

// ALGORITHMS.md section 1, row by row, in double. State is laid out as in a row.
struct Reference {
  OptimizerConfig config;
  uint32_t dim;
  std::vector<std::vector<double>> weights, states;

  Reference(const OptimizerConfig& config, uint32_t dim, const Rows& rows)
      : config(config), dim(dim) {
    for (size_t i = 0; i < rows.n; ++i) {
      weights.emplace_back(rows.weights[i], rows.weights[i] + dim);
      states.emplace_back(rows.states[i], rows.states[i] + StateFloats(config.kind, dim));
      if (config.kind != OptimizerKind::kFtrl) continue;
      // A row that starts from any weights: z such that w(z) at n = 0 gives them.
      for (uint32_t d = 0; d < dim; ++d) {
        const double w = weights[i][d];
        const double rate = config.learning_rate;
        states[i][d] = -w * (config.beta / rate + config.l2) - (w > 0 ? 1 : -1) * double{config.l1};
      }
    }
  }

  // REQUIRES (ftrl): the same rate in every step, that of the config.
  void Step(const std::vector<std::vector<double>>& gradients, double rate, uint64_t t) {
    for (size_t i = 0; i < weights.size(); ++i) {
      Row(Clipped(gradients[i], weights[i]), rate, t, weights[i], states[i]);
    }
  }

  std::vector<double> Clipped(std::vector<double> g, const std::vector<double>& w) const {
    double norm = 0;
    for (double& x : g) {
      const double limit = config.clip_value;
      if (limit > 0) x = x > limit ? limit : x < -limit ? -limit : x;
      norm += x * x;
    }
    norm = std::sqrt(norm);
    const double factor =
        config.clip_norm > 0 && norm > config.clip_norm ? config.clip_norm / norm : 1.0;
    for (size_t d = 0; d < g.size(); ++d) g[d] = g[d] * factor + config.weight_decay * w[d];
    return g;
  }

  void Row(const std::vector<double>& g, double rate, uint64_t t, std::vector<double>& w,
           std::vector<double>& s) const {
    if (config.kind == OptimizerKind::kRowwiseAdagrad) {
      double sum = 0;
      for (double x : g) sum += x * x;
      s[0] += sum / dim;
    }
    for (uint32_t d = 0; d < dim; ++d) {
      switch (config.kind) {
        case OptimizerKind::kSgd:
          w[d] -= rate * g[d];
          break;
        case OptimizerKind::kAdd:
          w[d] += g[d];
          break;
        case OptimizerKind::kMomentum:
          s[d] = config.momentum * s[d] + g[d];
          w[d] -= rate * (config.nesterov ? g[d] + config.momentum * s[d] : s[d]);
          break;
        case OptimizerKind::kAdagrad:
          s[d] += g[d] * g[d];
          w[d] -= rate * g[d] / (std::sqrt(s[d]) + config.epsilon);
          break;
        case OptimizerKind::kRowwiseAdagrad:
          w[d] -= rate * g[d] / (std::sqrt(s[0]) + config.epsilon);
          break;
        case OptimizerKind::kAdam: {
          const double b1 = config.beta1, b2 = config.beta2;
          double &m = s[d], &v = s[dim + d];
          m = b1 * m + (1 - b1) * g[d];
          v = b2 * v + (1 - b2) * g[d] * g[d];
          const double correction = std::sqrt(1 - std::pow(b2, t)) / (1 - std::pow(b1, t));
          w[d] -= rate * correction * m / (std::sqrt(v) + config.epsilon);
          break;
        }
        case OptimizerKind::kFtrl: {
          double &z = s[d], &n = s[dim + d];
          const double sigma = (std::sqrt(n + g[d] * g[d]) - std::sqrt(n)) / rate;
          z += g[d] - sigma * w[d];
          n += g[d] * g[d];
          const double sign = z > 0 ? 1 : -1;
          w[d] = std::abs(z) <= config.l1
                     ? 0
                     : -(z - sign * config.l1) / ((config.beta + std::sqrt(n)) / rate + config.l2);
          break;
        }
      }
    }
  }
};

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * 4) == 0;
}

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

// Every kind, and what can be put before it.
std::vector<OptimizerConfig> Variants() {
  std::vector<OptimizerConfig> all;
  for (OptimizerKind kind : kKinds) {
    OptimizerConfig config = Config(kind);
    config.learning_rate = 0.05f;
    all.push_back(config);
    if (kind == OptimizerKind::kMomentum) {
      config.nesterov = true;
      all.push_back(config);
    }
    config.clip_value = 0.6f;
    all.push_back(config);
    config.clip_norm = 0.9f;
    all.push_back(config);
    config.clip_value = 0.0f;
    if (kind != OptimizerKind::kFtrl) config.weight_decay = 0.1f;
    // Gradient and decay may cancel, and g / sqrt(g^2) says nothing of a g that is all rounding.
    config.epsilon = 1e-3f;
    all.push_back(config);
  }
  return all;
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
    CHECK(rows.weights[i / kDim][i % kDim] == Approx(w[i]).margin(2e-6));
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

TEST_CASE("a row with a non-finite gradient keeps its bits, others are updated",
          "[ops][optimizer]") {
  for (OptimizerKind kind : kKinds) {
    const OptimizerConfig config = Config(kind);
    for (uint32_t dim : kDims) {
      constexpr size_t kRows = 35;
      Values values(dim);
      std::vector<float> good(kRows * dim);
      values.Fill(good);
      Rows expected(config, dim, kRows);
      const Rows start(config, dim, kRows);
      ApplyRows(config, {8.0f, 0.1f, 1.0f}, dim, kRows, expected.weights.data(),
                expected.states.data(), good.data(), dim, nullptr);
      // The bad element stands first, last and in between; bad rows stand next to each other, too.
      for (float bad : {kNan, kInfinity, -kInfinity}) {
        std::vector<float> sums = good;
        const size_t bad_rows[] = {0, 3, 4, 31, 32, 34};
        size_t k = 0;
        for (size_t row : bad_rows) sums[row * dim + (k++ * 5) % dim] = bad;
        sums[34 * dim + dim - 1] = bad;
        Rows rows(config, dim, kRows);
        std::vector<uint8_t> refused(kRows, 9);
        CHECK(ApplyRows(config, {8.0f, 0.1f, 1.0f}, dim, kRows, rows.weights.data(),
                        rows.states.data(), sums.data(), dim, refused.data()) == 6);
        for (size_t i = 0; i < kRows; ++i) {
          const bool is_bad =
              std::find(std::begin(bad_rows), std::end(bad_rows), i) != std::end(bad_rows);
          CHECK(refused[i] == (is_bad ? 1 : 0));
          const Rows& want = is_bad ? start : expected;
          CHECK(std::memcmp(want.memory.data() + i * want.stride,
                            rows.memory.data() + i * rows.stride, rows.stride * 4) == 0);
        }
      }
    }
  }
}

TEST_CASE("a result that overflows is refused", "[ops][optimizer]") {
  for (uint32_t dim : kDims) {
    INFO("dim " << dim);
    const uint32_t at = dim - 1;
    std::vector<float> g(dim, 0.0f);

    Rows sgd(Config(OptimizerKind::kSgd), dim, 1);
    sgd.weights[0][at] = 3e38f;
    g[at] = -3e38f;
    std::vector<float> before = sgd.memory;
    CHECK(ApplyRows(Config(OptimizerKind::kSgd), {1.0f, 1.0f, 1.0f}, dim, 1, sgd.weights.data(),
                    sgd.states.data(), g.data(), dim, nullptr) == 1);
    CHECK(SameBits(before, sgd.memory));

    // The gradient's square overflows, so the accumulator would; the weight alone would not.
    for (OptimizerKind kind : {OptimizerKind::kAdagrad, OptimizerKind::kAdam, OptimizerKind::kFtrl,
                               OptimizerKind::kRowwiseAdagrad}) {
      Rows rows(Config(kind), dim, 1);
      g[at] = 1e30f;
      before = rows.memory;
      CHECK(ApplyRows(Config(kind), {1.0f, 0.1f, 1.0f}, dim, 1, rows.weights.data(),
                      rows.states.data(), g.data(), dim, nullptr) == 1);
      CHECK(SameBits(before, rows.memory));
    }
  }
}

TEST_CASE("no examples: every row is refused", "[ops][optimizer]") {
  Rows rows(Config(OptimizerKind::kSgd), 16, 3);
  const std::vector<float> before = rows.memory;
  const std::vector<float> sums(48, 1.0f);
  CHECK(ApplyRows(Config(OptimizerKind::kSgd), {0.0f, 0.1f, 1.0f}, 16, 3, rows.weights.data(),
                  nullptr, sums.data(), 16, nullptr) == 3);
  CHECK(SameBits(before, rows.memory));
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

// One row's update from `weights`; returns its outcome.
uint8_t ApplyOne(const OptimizerConfig& config, const StepScalars& scalars,
                 std::vector<float>& weights, std::vector<float>& state,
                 const std::vector<float>& sums) {
  float *w = weights.data(), *s = state.data();
  uint8_t outcome = 9;
  const size_t refused = ApplyRows(config, scalars, static_cast<uint32_t>(weights.size()), 1, &w,
                                   &s, sums.data(), weights.size(), &outcome);
  CHECK(refused == (outcome == kRowRefused ? 1 : 0));
  return outcome;
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
    for (uint32_t d = 0; d < kDim; ++d) REQUIRE(w[d] == Approx(x[d]).margin(3e-6));
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

double Norm(const std::vector<float>& x) {
  double sum = 0;
  for (float v : x) sum += double{v} * v;
  return std::sqrt(sum);
}

TEST_CASE("a long gradient is scaled to the norm, whatever its magnitude", "[ops][optimizer]") {
  OptimizerConfig config = Config(OptimizerKind::kSgd);
  const StepScalars scalars = {2.0f, -1.0f, 1.0f};  // from weight 0: leaves the gradient itself
  for (uint32_t dim : kDims) {
    for (int exponent : {-140, -126, -60, -3, 0, 30, 63, 64, 100, 126, 127}) {
      Values values(dim);
      std::vector<float> g(dim), w(dim, 0.0f), none;
      values.Fill(g);
      g[dim / 2] = 0.9f;
      for (float& x : g) x = std::ldexp(x, exponent - 1);
      std::vector<float> sums = g;
      for (float& x : sums) x *= 2.0f;
      const double norm = Norm(g);
      INFO("dim " << dim << " exponent " << exponent << " norm " << norm);
      for (double share : {1e-3, 0.5, 0.999, 1.001, 2.0}) {
        config.clip_norm = static_cast<float>(norm * share);
        if (!(config.clip_norm > 0.0f && config.clip_norm < kInfinity)) continue;
        if (exponent < -120) continue;  // denormal limits are not exact shares
        w.assign(dim, 0.0f);
        CHECK(ApplyOne(config, scalars, w, none, sums) == (share < 1 ? kRowClipped : 0));
        if (share > 1) {
          CHECK(SameBits(w, g));
          continue;
        }
        CHECK(Norm(w) == Approx(config.clip_norm).epsilon(1e-6));
        double worst = 0;
        for (uint32_t d = 0; d < dim; ++d) {
          worst = std::max(worst, std::abs(w[d] - g[d] * (config.clip_norm / norm)));
        }
        CHECK(worst < 1e-6 * config.clip_norm);
      }
    }
  }
  config.clip_norm = 2.0f;  // the largest exponent there is
  std::vector<float> huge(2, 0.0f), no_state;
  CHECK(ApplyOne(config, {1.0f, -1.0f, 1.0f}, huge, no_state, {3e38f, -2.25e38f}) == kRowClipped);
  CHECK(huge[0] == Approx(1.6f));
  CHECK(huge[1] == Approx(-1.2f));
  // Denormal gradients do not look longer than they are, and zero has no direction.
  config.clip_norm = 1e-30f;
  std::vector<float> w(5, 0.0f), none;
  CHECK(ApplyOne(config, scalars, w, none, {1e-40f, 2e-45f, 0, 0, -1e-40f}) == 0);
  CHECK(ApplyOne(config, scalars, w, none, {0, 0, 0, 0, 0}) == 0);
}

TEST_CASE("elements are cut to the value before the norm is taken", "[ops][optimizer]") {
  OptimizerConfig config = Config(OptimizerKind::kSgd);
  const StepScalars scalars = {1.0f, -1.0f, 1.0f};
  std::vector<float> none, w(4, 0.0f);
  config.clip_value = 1.0f;
  CHECK(ApplyOne(config, scalars, w, none, {5.0f, -5.0f, 0.5f, -1.0f}) == kRowClipped);
  CHECK(w == std::vector<float>{1.0f, -1.0f, 0.5f, -1.0f});
  w.assign(4, 0.0f);
  CHECK(ApplyOne(config, scalars, w, none, {1.0f, -1.0f, 0.5f, -1.0f}) == 0);  // at the limit
  config.clip_norm = 2.0f;  // above the norm of (1, 1, 0, 0), below that of (5, 5, 0, 0)
  w.assign(4, 0.0f);
  CHECK(ApplyOne(config, scalars, w, none, {5.0f, 5.0f, 0.0f, 0.0f}) == kRowClipped);
  CHECK(w == std::vector<float>{1.0f, 1.0f, 0.0f, 0.0f});
}

TEST_CASE("decay pulls by the weight, is not clipped and does not count", "[ops][optimizer]") {
  OptimizerConfig config = Config(OptimizerKind::kSgd);
  config.weight_decay = 0.5f;
  config.clip_norm = 1.0f;
  std::vector<float> w = {100.0f, -200.0f, 0.0f}, none;
  CHECK(ApplyOne(config, {4.0f, 0.1f, 1.0f}, w, none, {0.0f, 0.0f, 0.4f}) == 0);
  CHECK(w[0] == Approx(95.0f));
  CHECK(w[1] == Approx(-190.0f));
  CHECK(w[2] == Approx(-0.01f));
}

TEST_CASE("what is refused is never called clipped", "[ops][optimizer]") {
  for (OptimizerKind kind : kKinds) {
    OptimizerConfig config = Config(kind);
    config.clip_norm = 1.0f;
    config.clip_value = 0.5f;
    for (uint32_t dim : kDims) {
      constexpr size_t kRows = 5;
      Rows rows(config, dim, kRows);
      std::vector<float> sums(kRows * dim, 3.0f);
      sums[dim - 1] = kNan;
      sums[2 * dim] = -kInfinity;
      for (uint32_t d = 0; d < dim; ++d) sums[3 * dim + d] = 1e-3f / static_cast<float>(dim);
      const std::vector<float> before = rows.memory;
      std::vector<uint8_t> outcomes(kRows, 9);
      CHECK(ApplyRows(config, {1.0f, 0.1f, 1.0f}, dim, kRows, rows.weights.data(),
                      rows.states.data(), sums.data(), dim, outcomes.data()) == 2);
      CHECK(outcomes == std::vector<uint8_t>{1, 2, 1, 0, 2});
      for (size_t row : {0, 2}) {
        CHECK(std::memcmp(before.data() + row * rows.stride, rows.memory.data() + row * rows.stride,
                          rows.stride * 4) == 0);
      }
      // The same without anybody asking for outcomes.
      Rows again(config, dim, kRows);
      CHECK(ApplyRows(config, {1.0f, 0.1f, 1.0f}, dim, kRows, again.weights.data(),
                      again.states.data(), sums.data(), dim, nullptr) == 2);
      CHECK(SameBits(again.memory, rows.memory));
    }
  }
  // The result overflows although the gradient was cut.
  OptimizerConfig config = Config(OptimizerKind::kSgd);
  config.clip_value = 1e38f;
  std::vector<float> w = {-3e38f, 1.0f}, none;
  CHECK(ApplyOne(config, {1.0f, 1.0f, 1.0f}, w, none, {2e38f, 0.0f}) == kRowRefused);
  CHECK(w == std::vector<float>{-3e38f, 1.0f});
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

constexpr uint32_t kGoldenDims[] = {1, 2, 7, 8, 16, 17, 31, 32, 33, 100, 128, 129, 256, 300};

uint64_t HashOfUpdates(const std::vector<OptimizerConfig>& configs) {
  GoldenHash hash;
  for (const OptimizerConfig& config : configs) {
    for (uint32_t dim : kGoldenDims) {
      Rows rows(config, dim, 33);
      AdamPowers powers(config.beta1, config.beta2);
      Values values(dim);
      for (uint64_t t = 1; t <= 9; ++t) {
        std::vector<float> sums(33 * dim);
        values.Fill(sums);
        for (size_t i = 0; i < sums.size(); ++i) {
          sums[i] = std::ldexp(sums[i], static_cast<int>(i * 7 % 150) - 75);
        }
        if (t == 5) sums[dim] = kNan;
        const float examples = t % 2 == 0 ? 256.0f : 251.0f;
        std::vector<uint8_t> outcomes(33);
        hash.Add(static_cast<uint32_t>(ApplyRows(config, {examples, 0.03f, powers.Correction(t)},
                                                 dim, 33, rows.weights.data(), rows.states.data(),
                                                 sums.data(), dim, outcomes.data())));
        for (uint8_t outcome : outcomes) {
          if (outcome == kRowClipped) hash.Add(uint32_t{outcome});
        }
      }
      hash.Add(rows.memory);
    }
  }
  return hash.value();
}

void CheckGolden(const std::vector<OptimizerConfig>& configs, uint64_t golden) {
  const IsaLevel supported = SetActiveIsaLevel(IsaLevel::kV3);
  CHECK(HashOfUpdates(configs) == golden);
  if (SupportedIsaLevel() >= IsaLevel::kV4) {
    SetActiveIsaLevel(IsaLevel::kV4);
    CHECK(HashOfUpdates(configs) == golden);
  } else {
    WARN("no AVX-512 here: its build was not compared");
  }
  SetActiveIsaLevel(supported);
}

TEST_CASE("golden bits of updates, for every instruction set", "[ops][optimizer][exact]") {
  CheckGolden(
      {Config(OptimizerKind::kSgd), Config(OptimizerKind::kAdagrad), Config(OptimizerKind::kAdam)},
      0x5eb9ef351b68f291);
  CheckGolden(Variants(), 0xf02bb43fefe27f66);
}

}  // namespace
}  // namespace strata::ops

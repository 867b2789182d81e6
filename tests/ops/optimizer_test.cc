#include "ops/optimizer.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "ops/cpu_features.h"
#include "tests/ops/golden_hash.h"

namespace strata::ops {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr OptimizerKind kKinds[] = {OptimizerKind::kSgd, OptimizerKind::kAdagrad,
                                    OptimizerKind::kAdam};
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
  return config;
}

// ALGORITHMS.md section 1, element by element, in double.
struct Reference {
  OptimizerConfig config;
  double rate = 0;
  std::vector<double> w, a, b;

  void Step(const std::vector<double>& g, uint64_t t) {
    for (size_t i = 0; i < w.size(); ++i) {
      switch (config.kind) {
        case OptimizerKind::kSgd:
          w[i] -= rate * g[i];
          break;
        case OptimizerKind::kAdagrad:
          a[i] += g[i] * g[i];
          w[i] -= rate * g[i] / (std::sqrt(a[i]) + config.epsilon);
          break;
        case OptimizerKind::kAdam: {
          const double b1 = config.beta1, b2 = config.beta2;
          a[i] = b1 * a[i] + (1 - b1) * g[i];
          b[i] = b2 * b[i] + (1 - b2) * g[i] * g[i];
          const double correction = std::sqrt(1 - std::pow(b2, t)) / (1 - std::pow(b1, t));
          w[i] -= rate * correction * a[i] / (std::sqrt(b[i]) + config.epsilon);
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
  OptimizerConfig config = Config(OptimizerKind::kAdagrad);
  config.initial_accumulator = 0.25f;
  std::vector<float> state(17, -1.0f);
  InitState(config, 17, state.data());
  CHECK(state == std::vector<float>(17, 0.25f));
  config.kind = OptimizerKind::kAdam;
  state.assign(34, -1.0f);
  InitState(config, 17, state.data());
  CHECK(state == std::vector<float>(34, 0.0f));
}

TEST_CASE("optimizers follow their equations", "[ops][optimizer]") {
  constexpr size_t kRows = 37;
  constexpr float kExamples[] = {1.0f, 48.0f, 4096.0f};
  for (OptimizerKind kind : kKinds) {
    for (uint32_t dim : kDims) {
      OptimizerConfig config = Config(kind);
      Rows rows(config, dim, kRows);
      Reference reference{config, 0.05, {}, {}, {}};
      for (size_t i = 0; i < kRows; ++i) {
        for (uint32_t d = 0; d < dim; ++d) reference.w.push_back(rows.weights[i][d]);
      }
      reference.a.assign(kRows * dim, 0.0);
      reference.b.assign(kRows * dim, 0.0);
      AdamPowers powers(config.beta1, config.beta2);
      const size_t gradient_stride = dim + 3;
      Values values(dim + 1);
      for (uint64_t t = 1; t <= 12; ++t) {
        const float examples = kExamples[t % 3];
        std::vector<float> sums(kRows * gradient_stride);
        values.Fill(sums);
        for (float& x : sums) x *= examples;
        std::vector<double> g;
        for (size_t i = 0; i < kRows; ++i) {
          for (uint32_t d = 0; d < dim; ++d) {
            g.push_back(static_cast<double>(sums[i * gradient_stride + d]) / examples);
          }
        }
        reference.rate = static_cast<double>(0.05f);
        reference.Step(g, t);
        const StepScalars scalars{examples, 0.05f, powers.Correction(t)};
        std::vector<uint8_t> refused(kRows, 9);
        CHECK(ApplyRows(config, scalars, dim, kRows, rows.weights.data(), rows.states.data(),
                        sums.data(), gradient_stride, refused.data()) == 0);
        CHECK(refused == std::vector<uint8_t>(kRows, 0));
      }
      double worst = 0;
      for (size_t i = 0; i < kRows; ++i) {
        for (uint32_t d = 0; d < dim; ++d) {
          worst = std::max(worst, std::abs(rows.weights[i][d] - reference.w[i * dim + d]));
          if (kind == OptimizerKind::kSgd) continue;
          worst = std::max(worst, std::abs(rows.states[i][d] - reference.a[i * dim + d]));
          if (kind == OptimizerKind::kAdagrad) continue;
          worst = std::max(worst, std::abs(rows.states[i][dim + d] - reference.b[i * dim + d]));
        }
        CHECK(rows.memory[i * rows.stride + rows.stride - 1] == 7.0f);
      }
      INFO("kind " << static_cast<int>(kind) << " dim " << dim);
      // Twelve steps of a few roundings each, of values up to 4 in magnitude.
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
      for (size_t i = 0; i < 9; ++i) {
        for (uint32_t d = 0; d < dim; ++d) {
          REQUIRE(rows.states[i][d] >= before[i * rows.stride + dim + d]);
        }
      }
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
    for (OptimizerKind kind : {OptimizerKind::kAdagrad, OptimizerKind::kAdam}) {
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

constexpr uint32_t kGoldenDims[] = {1, 2, 7, 8, 16, 17, 31, 32, 33, 100, 128, 129, 256, 300};

uint64_t HashOfUpdates() {
  GoldenHash hash;
  for (OptimizerKind kind : kKinds) {
    for (uint32_t dim : kGoldenDims) {
      const OptimizerConfig config = Config(kind);
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
        std::vector<uint8_t> refused(33);
        hash.Add(static_cast<uint32_t>(ApplyRows(config, {examples, 0.03f, powers.Correction(t)},
                                                 dim, 33, rows.weights.data(), rows.states.data(),
                                                 sums.data(), dim, refused.data())));
      }
      hash.Add(rows.memory);
    }
  }
  return hash.value();
}

TEST_CASE("golden bits of updates, for every instruction set", "[ops][optimizer][exact]") {
  constexpr uint64_t kGolden = 0x5eb9ef351b68f291;
  const IsaLevel supported = SetActiveIsaLevel(IsaLevel::kV3);
  CHECK(HashOfUpdates() == kGolden);
  if (SupportedIsaLevel() >= IsaLevel::kV4) {
    SetActiveIsaLevel(IsaLevel::kV4);
    CHECK(HashOfUpdates() == kGolden);
  } else {
    WARN("no AVX-512 here: its build was not compared");
  }
  SetActiveIsaLevel(supported);
}

}  // namespace
}  // namespace strata::ops

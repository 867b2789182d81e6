#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <vector>

#include "ops/optimizer.h"
#include "tests/ops/optimizer_rows.h"

namespace strata::ops {
namespace {

using testing::ApplyOne;
using testing::Config;
using testing::kDims;
using testing::kInfinity;
using testing::kKinds;
using testing::kNan;
using testing::Rows;
using testing::SameBits;
using testing::Values;

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

}  // namespace
}  // namespace strata::ops

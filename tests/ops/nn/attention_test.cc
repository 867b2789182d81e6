#include "ops/nn/attention.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

namespace strata::ops {
namespace {

constexpr AttentionShape kShape = {3, 2};
const std::vector<float> kValues = {1, 2, -3, 4, 0.5f, -1};
const std::vector<float> kTarget = {2, -1};

TEST_CASE("the perceptron takes values, target, differences and products", "[attention]") {
  std::vector<float> out(3 * 9, 77);
  AttentionInputs(kShape, kValues.data(), kTarget.data(), out.data(), 9);
  CHECK(out == std::vector<float>{1,    2,  2, -1, -1,    3, 2,  -2, 77,  //
                                  -3,   4,  2, -1, -5,    5, -6, -4, 77,  //
                                  0.5f, -1, 2, -1, -1.5f, 0, 1,  1,  77});
}

TEST_CASE("values are summed by their weights", "[attention]") {
  const std::vector<float> a = {2, 9, 10, 9, -4, 9};
  std::vector<float> out(2, 77), by_weight(6, 77);
  AttentionSum(kShape, kValues.data(), a.data(), 2, out.data());
  CHECK(out == std::vector<float>{-30, 48});
  AttentionWeightGradients(kShape, kValues.data(), kTarget.data(), by_weight.data(), 2);
  CHECK(by_weight == std::vector<float>{0, 77, -10, 77, 2, 77});
  AttentionSum({0, 2}, nullptr, nullptr, 2, out.data());
  CHECK(out == std::vector<float>{0, 0});
}

// A function of the inputs' rows and the sum, in double: sum of weights times each.
double ValueOf(const std::vector<double>& v, const std::vector<double>& q, const float* a,
               const float* by_sum, const std::vector<float>& by_inputs) {
  double value = 0;
  for (size_t p = 0; p < 3; ++p) {
    const float* const by = by_inputs.data() + p * 8;
    for (size_t d = 0; d < 2; ++d) {
      const double x = v[p * 2 + d];
      value += by_sum[d] * a[p] * x + by[d] * x + by[2 + d] * q[d] + by[4 + d] * (x - q[d]) +
               by[6 + d] * x * q[d];
    }
  }
  return value;
}

TEST_CASE("gradients by values and target are finite differences", "[attention]") {
  const std::vector<float> a = {0.3f, -1.5f, 2}, by_sum = {0.7f, -0.4f};
  std::vector<float> by_inputs;
  for (int i = 0; i < 24; ++i) by_inputs.push_back(static_cast<float>(std::sin(i)));
  std::vector<float> by_v(6, 77), by_q = {100, 200};
  AttentionGradients g;
  g.v = kValues.data();
  g.q = kTarget.data();
  g.a = a.data();
  g.a_stride = 1;
  g.sum_gradient = by_sum.data();
  g.inputs = by_inputs.data();
  g.inputs_stride = 8;
  AttentionBackward(kShape, g, by_v.data(), by_q.data());
  const std::vector<double> v(kValues.begin(), kValues.end()), q(kTarget.begin(), kTarget.end());
  const auto value = [&](const std::vector<double>& at_v, const std::vector<double>& at_q) {
    return ValueOf(at_v, at_q, a.data(), by_sum.data(), by_inputs);
  };
  const auto moved = [](std::vector<double> x, size_t i, double by) {
    x[i] += by;
    return x;
  };
  for (size_t i = 0; i < 6; ++i) {
    const double expected = (value(moved(v, i, 1e-3), q) - value(moved(v, i, -1e-3), q)) / 2e-3;
    CHECK(by_v[i] == Approx(expected).epsilon(1e-5).margin(1e-6));
  }
  for (size_t i = 0; i < 2; ++i) {
    const double expected = (value(v, moved(q, i, 1e-3)) - value(v, moved(q, i, -1e-3))) / 2e-3;
    CHECK(by_q[i] - 100 * static_cast<float>(i + 1) == Approx(expected).epsilon(1e-4));
  }
}

}  // namespace
}  // namespace strata::ops

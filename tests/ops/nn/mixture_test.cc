#include "ops/nn/mixture.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

namespace strata::ops {
namespace {

TEST_CASE("a softmax is that of wider arithmetic, whatever the size of its inputs", "[mixture]") {
  for (const float offset : {0.0f, 1000.0f, -1000.0f}) {
    const std::vector<float> in = {offset, offset + 1.5f, offset - 3.0f, offset + 1.5f};
    std::vector<float> out(in.size());
    Softmax(in.size(), in.data(), out.data());
    double sum = 0;
    for (const float x : in) sum += std::exp(double{x} - offset);
    for (size_t i = 0; i < in.size(); ++i) {
      CHECK(out[i] == Approx(std::exp(double{in[i]} - offset) / sum).epsilon(1e-6));
    }
  }
  float one = 7;
  Softmax(1, &one, &one);
  CHECK(one == 1.0f);
}

TEST_CASE("a softmax's gradients are finite differences, also in place", "[mixture]") {
  const std::vector<double> in = {0.3, -1.1, 0.9};
  const std::vector<float> by_out = {0.7f, -0.2f, 1.3f};
  const auto value = [&](const std::vector<double>& x) {
    double sum = 0, all = 0;
    for (const double e : x) all += std::exp(e);
    for (size_t i = 0; i < x.size(); ++i) sum += by_out[i] * std::exp(x[i]) / all;
    return sum;
  };
  const std::vector<float> narrow(in.begin(), in.end());
  std::vector<float> out(3), got = by_out;
  Softmax(3, narrow.data(), out.data());
  SoftmaxGradients(3, out.data(), got.data(), got.data());
  for (size_t i = 0; i < 3; ++i) {
    std::vector<double> above = in, below = in;
    above[i] += 1e-6;
    below[i] -= 1e-6;
    CHECK(got[i] == Approx((value(above) - value(below)) / 2e-6).epsilon(1e-5));
  }
}

TEST_CASE("vectors are mixed in order, the first by a product", "[mixture]") {
  const std::vector<float> a = {1, -0.0f, 3}, b = {10, 20, -30};
  const float* const vectors[] = {a.data(), b.data()};
  const float weights[] = {0.5f, 2.0f};
  std::vector<float> out(3);
  Mix(1, weights, vectors, 3, out.data());
  CHECK(out == std::vector<float>{0.5f, 0.0f, 1.5f});
  CHECK(std::signbit(out[1]));
  Mix(2, weights, vectors, 3, out.data());
  CHECK(out == std::vector<float>{20.5f, 40, -58.5f});
  CHECK(Dot(3, a.data(), b.data()) == -80);
  CHECK(Dot(0, a.data(), b.data()) == 0);
}

}  // namespace
}  // namespace strata::ops

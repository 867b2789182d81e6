#include "ops/nn/mlp.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <vector>

#include "ops/cpu_features.h"
#include "ops/nn/gemm.h"
#include "ops/parallel.h"

namespace strata::ops {
namespace {

std::vector<float> Values(size_t n, uint32_t seed) {
  std::vector<float> out(n);
  for (float& x : out) {
    seed = seed * 1664525u + 1013904223u;
    x = static_cast<float>(static_cast<int32_t>(seed)) * 0x1p-31f;
  }
  return out;
}

struct Weights {
  std::vector<std::vector<float>> weight, bias;  // by layer
};

Weights MakeWeights(const std::vector<size_t>& widths) {
  Weights w;
  for (size_t i = 0; i + 1 < widths.size(); ++i) {
    const auto seed = static_cast<uint32_t>(i);
    w.weight.push_back(Values(widths[i] * widths[i + 1], 10 + seed));
    w.bias.push_back(Values(widths[i + 1], 20 + seed));
  }
  return w;
}

struct Result {
  std::vector<float> output, input_gradient;
  Weights gradient;
};

// The documented order, element by element.
Result Expected(const std::vector<size_t>& widths, const Weights& w, size_t batch,
                const std::vector<float>& input, const std::vector<float>& output_gradient) {
  const size_t layers = widths.size() - 1;
  std::vector<std::vector<float>> h = {input};
  for (size_t l = 0; l < layers; ++l) {
    const size_t in = widths[l], out = widths[l + 1];
    h.emplace_back(batch * out);
    for (size_t r = 0; r < batch; ++r) {
      for (size_t j = 0; j < out; ++j) {
        float x = 0;
        for (size_t k = 0; k < in; ++k) x = std::fma(h[l][r * in + k], w.weight[l][k * out + j], x);
        x += w.bias[l][j];
        h[l + 1][r * out + j] = l + 1 < layers && !(x > 0) ? 0.0f : x;
      }
    }
  }
  Result result{h.back(), output_gradient, w};
  std::vector<float>& d = result.input_gradient;  // of the level above, then of the one below
  for (size_t l = layers; l-- > 0;) {
    const size_t in = widths[l], out = widths[l + 1];
    for (size_t j = 0; j < out; ++j) {
      float sum = 0;
      for (size_t r = 0; r < batch; ++r) sum += d[r * out + j];
      result.gradient.bias[l][j] = sum;
      for (size_t k = 0; k < in; ++k) {
        float x = 0;
        for (size_t r = 0; r < batch; ++r) x = std::fma(h[l][r * in + k], d[r * out + j], x);
        result.gradient.weight[l][k * out + j] = x;
      }
    }
    std::vector<float> below(batch * in);
    for (size_t r = 0; r < batch; ++r) {
      for (size_t k = 0; k < in; ++k) {
        float x = 0;
        for (size_t j = 0; j < out; ++j) {
          x = std::fma(d[r * out + j], w.weight[l][k * out + j], x);
        }
        below[r * in + k] = l > 0 && !(h[l][r * in + k] > 0) ? 0.0f : x;
      }
    }
    d = below;
  }
  return result;
}

Result Run(const GemmKernel& kernel, const std::vector<size_t>& widths, const Weights& w,
           size_t batch, const std::vector<float>& input, const std::vector<float>& output_gradient,
           size_t block, Parallel* parallel) {
  const size_t layers = widths.size() - 1, in = widths.front(), out = widths.back();
  Mlp mlp(kernel, widths, Mlp::Output::kLinear);
  std::vector<MlpLayer> layer(layers);
  for (size_t l = 0; l < layers; ++l) layer[l] = {w.weight[l].data(), w.bias[l].data()};
  mlp.SetWeights(layer, Mlp::Passes::kForwardAndBackward, parallel);
  mlp.Resize(batch, Mlp::Passes::kForwardAndBackward);
  Result result{std::vector<float>(batch * out), std::vector<float>(batch * in), w};
  parallel->For((batch + block - 1) / block, [&](size_t b) {
    const size_t first = b * block, rows = std::min(block, batch - first);
    for (size_t r = first; r < first + rows; ++r) {
      std::memcpy(mlp.input(r), &input[r * in], in * sizeof(float));
    }
    mlp.Forward(first, rows);
    for (size_t r = first; r < first + rows; ++r) {
      std::memcpy(&result.output[r * out], mlp.output(r), out * sizeof(float));
      std::memcpy(mlp.output_gradient(r), &output_gradient[r * out], out * sizeof(float));
    }
    mlp.Backward(first, rows);
    for (size_t r = first; r < first + rows; ++r) {
      std::memcpy(&result.input_gradient[r * in], mlp.input_gradient(r), in * sizeof(float));
    }
  });
  std::vector<MlpLayerGradient> gradient(layers);
  for (size_t l = 0; l < layers; ++l) {
    gradient[l] = {result.gradient.weight[l].data(), result.gradient.bias[l].data()};
  }
  std::vector<TransposedProduct> products;
  mlp.AppendWeightGradients(batch, gradient, &products);
  TransposedGemm(kernel).Run(products, parallel);
  return result;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST_CASE("a perceptron computes in its documented order", "[ops]") {
  const std::vector<std::vector<size_t>> shapes = {
      {3, 1}, {1, 1, 1}, {29, 17, 33, 1}, {50, 64, 3}, {5, 1024, 2}};
  for (const auto& widths : shapes) {
    for (size_t batch : {1, 13, 250}) {
      const Weights w = MakeWeights(widths);
      const auto input = Values(batch * widths.front(), 1);
      const auto gradient = Values(batch * widths.back(), 2);
      const Result expected = Expected(widths, w, batch, input, gradient);
      for (IsaLevel level : {IsaLevel::kV3, SupportedIsaLevel()}) {
        for (size_t threads : {1, 2, 3}) {
          const auto parallel = MakeParallel(threads);
          const Result got = Run(GemmKernelOf(level), widths, w, batch, input, gradient,
                                 10 * threads + 1, parallel.get());
          INFO("layers " << widths.size() - 1 << " batch " << batch << " threads " << threads);
          REQUIRE(SameBits(got.output, expected.output));
          REQUIRE(SameBits(got.input_gradient, expected.input_gradient));
          for (size_t l = 0; l + 1 < widths.size(); ++l) {
            REQUIRE(SameBits(got.gradient.weight[l], expected.gradient.weight[l]));
            REQUIRE(SameBits(got.gradient.bias[l], expected.gradient.bias[l]));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace strata::ops

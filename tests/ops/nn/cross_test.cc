#include "ops/nn/cross.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <vector>

#include "ops/cpu_features.h"
#include "ops/nn/gemm.h"
#include "ops/nn/layer_memory.h"
#include "ops/parallel.h"

namespace strata::ops {
namespace {

using Matrix = std::vector<float>;

Matrix Values(size_t n, uint32_t seed) {
  Matrix out(n);
  for (float& x : out) {
    seed = seed * 1664525u + 1013904223u;
    x = static_cast<float>(static_cast<int32_t>(seed)) * 0x1p-31f;
  }
  return out;
}

bool SameBits(const Matrix& a, const Matrix& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

struct Layer {
  Matrix v, weight, bias;
};

struct Problem {
  Problem(size_t rows, size_t width, size_t layers, size_t rank)
      : rows(rows), width(width), rank(rank), x0(Values(rows * width, 1)) {
    for (uint32_t l = 0; l < layers; ++l) {
      Layer layer;
      if (rank > 0) layer.v = Values(width * rank, 10 + l);
      layer.weight = Values((rank > 0 ? rank : width) * width, 20 + l);
      layer.bias = Values(width, 30 + l);
      weights.push_back(layer);
    }
  }
  size_t rows, width, rank;
  Matrix x0, gradient = Values(rows * width, 2), below = Values(rows * width, 3);
  std::vector<Layer> weights;
};

struct Result {
  Matrix output, input_gradient;
  std::vector<Layer> gradients;
};

// c (m, n) = start or c + a (m, k) b (k, n), one chain of fma an element.
Matrix Multiply(const Matrix& a, const Matrix& b, size_t k, Matrix c) {
  const size_t m = a.size() / k, n = b.size() / k;
  c.resize(m * n, 0.0f);
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < n; ++j) {
      for (size_t e = 0; e < k; ++e) {
        c[i * n + j] = std::fma(a[i * k + e], b[e * n + j], c[i * n + j]);
      }
    }
  }
  return c;
}

Matrix Transposed(const Matrix& a, size_t columns) {
  const size_t rows = a.size() / columns;
  Matrix out(a.size());
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < columns; ++c) out[c * rows + r] = a[r * columns + c];
  }
  return out;
}

Result Expected(const Problem& p) {
  const size_t n = p.width, inputs = p.rank > 0 ? p.rank : n;
  std::vector<Matrix> x = {p.x0}, projected, u;
  for (const Layer& layer : p.weights) {
    projected.push_back(p.rank > 0 ? Multiply(x.back(), layer.v, n, {}) : x.back());
    u.push_back(Multiply(projected.back(), layer.weight, inputs, {}));
    Matrix next = x.back();
    for (size_t e = 0; e < next.size(); ++e) {
      u.back()[e] += layer.bias[e % n];
      next[e] = std::fma(p.x0[e], u.back()[e], x.back()[e]);
    }
    x.push_back(next);
  }
  Result r{x.back(), p.below, std::vector<Layer>(p.weights.size())};
  Matrix g = p.gradient;
  for (size_t l = p.weights.size(); l-- > 0;) {
    Matrix t(g.size());
    for (size_t e = 0; e < g.size(); ++e) {
      t[e] = g[e] * p.x0[e];
      r.input_gradient[e] = std::fma(g[e], u[l][e], r.input_gradient[e]);
    }
    r.gradients[l].weight = Multiply(Transposed(projected[l], inputs), t, p.rows, {});
    r.gradients[l].bias.assign(n, 0.0f);
    for (size_t e = 0; e < t.size(); ++e) r.gradients[l].bias[e % n] += t[e];
    if (p.rank == 0) {
      g = Multiply(t, Transposed(p.weights[l].weight, n), n, g);
      continue;
    }
    const Matrix q = Multiply(t, Transposed(p.weights[l].weight, n), n, {});
    r.gradients[l].v = Multiply(Transposed(x[l], n), q, p.rows, {});
    g = Multiply(q, Transposed(p.weights[l].v, p.rank), p.rank, g);
  }
  for (size_t e = 0; e < g.size(); ++e) r.input_gradient[e] += g[e];
  return r;
}

Result Run(const Problem& p, const GemmKernel& kernel, size_t block, Parallel* parallel) {
  CrossNetwork cross(kernel, p.width, p.weights.size(), p.rank);
  std::vector<CrossLayer> layers;
  for (const Layer& l : p.weights) layers.push_back({l.v.data(), l.weight.data(), l.bias.data()});
  cross.SetWeights(layers, Passes::kForwardAndBackward, parallel);
  cross.Resize(p.rows, Passes::kForwardAndBackward);
  const CrossInput x0 = {p.x0.data(), p.width};
  Result r{Matrix(p.x0.size()), p.below, p.weights};
  parallel->For((p.rows + block - 1) / block, [&](size_t b) {
    const size_t first = b * block, rows = std::min(block, p.rows - first);
    cross.Forward(first, rows, x0);
    for (size_t i = first; i < first + rows; ++i) {
      std::memcpy(&r.output[i * p.width], cross.output(i), p.width * sizeof(float));
      std::memcpy(cross.output_gradient(i), &p.gradient[i * p.width], p.width * sizeof(float));
    }
    cross.Backward(first, rows, x0, r.input_gradient.data());
  });
  std::vector<CrossLayerGradient> out;
  for (Layer& l : r.gradients) out.push_back({l.v.data(), l.weight.data(), l.bias.data()});
  std::vector<TransposedProduct> products;
  cross.AppendWeightGradients(p.rows, x0, out, &products);
  TransposedGemm gemm(kernel);
  gemm.Run(products, parallel);
  return r;
}

TEST_CASE("the cross network and its gradients, to the bit", "[ops]") {
  for (const Problem& p : {Problem(1, 1, 1, 0), Problem(5, 7, 1, 0), Problem(40, 33, 3, 0),
                           Problem(9, 5, 2, 1), Problem(40, 33, 3, 4), Problem(30, 6, 2, 20)}) {
    INFO(p.rows << " x " << p.width << ", " << p.weights.size() << " layers of rank " << p.rank);
    const Result expected = Expected(p);
    for (IsaLevel level : {IsaLevel::kV3, SupportedIsaLevel()}) {
      for (size_t threads : {1u, 2u}) {
        const auto parallel = MakeParallel(threads);
        const Result got = Run(p, GemmKernelOf(level), threads == 1 ? 100 : 7, parallel.get());
        CHECK(SameBits(got.output, expected.output));
        CHECK(SameBits(got.input_gradient, expected.input_gradient));
        for (size_t l = 0; l < p.weights.size(); ++l) {
          CHECK(SameBits(got.gradients[l].v, expected.gradients[l].v));
          CHECK(SameBits(got.gradients[l].weight, expected.gradients[l].weight));
          CHECK(SameBits(got.gradients[l].bias, expected.gradients[l].bias));
        }
      }
    }
  }
}

}  // namespace
}  // namespace strata::ops

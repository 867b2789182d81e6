// Attention over sequences of several lengths against ops/nn, bit for bit.
#include "ops/cuda/nn/attention.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

#include "ops/nn/attention.h"
#include "tests/ops/cuda/api/test_apis.h"

namespace strata::ops::gpu {
namespace {

using testing::Apis;
using testing::DeviceVector;
using testing::Differences;
using testing::Random;
using testing::TestApi;

constexpr uint32_t kExamples = 130, kMost = 5, kWeightStride = 4;

// Rows of an example: the sum, the target, a float of others, values.
struct Problem {
  explicit Problem(uint32_t dim) : dim(dim), stride(2 * dim + 1 + kMost * dim) {
    Random random(dim);
    for (uint32_t i = 0; i < 2 * kExamples; ++i) lengths.push_back(random.Below(kMost + 1));
    vectors = random.Floats(kExamples * stride);
    gradients = random.Floats(kExamples * stride);
    weights = random.Floats(kExamples * kMost * kWeightStride);
    by_inputs = random.Floats(kExamples * kMost * in_stride());
  }
  uint32_t in_stride() const { return 4 * dim + 3; }
  uint32_t length(uint32_t i) const { return lengths[2 * i + 1]; }
  AttentionTask Task() const {
    AttentionTask task;
    task.examples = kExamples;
    task.most = kMost;
    task.dim = dim;
    task.lengths = lengths.data() + 1;  // of the second of two sequences
    task.lengths_stride = 2;
    task.sum = 0;
    task.target = dim;
    task.values = 2 * dim + 1;
    return task;
  }

  uint32_t dim, stride;
  std::vector<uint32_t> lengths;
  std::vector<float> vectors, gradients, weights, by_inputs;
};

struct Right {
  explicit Right(const Problem& p)
      : vectors(p.vectors),
        gradients(p.gradients),
        inputs(kExamples * kMost * p.in_stride(), 7.0f),
        by_weights(kExamples * kMost * kWeightStride, 7.0f) {
    const AttentionTask task = p.Task();
    for (uint32_t i = 0; i < kExamples; ++i) {
      const AttentionShape shape = {p.length(i), p.dim};
      float* const x = vectors.data() + i * p.stride;
      float* const to = gradients.data() + i * p.stride;
      const size_t row = i * kMost;
      float* const in = inputs.data() + row * p.in_stride();
      ops::AttentionInputs(shape, x + task.values, x + task.target, in, p.in_stride());
      float* const a_gradient = by_weights.data() + row * kWeightStride;
      ops::AttentionWeightGradients(shape, x + task.values, to + task.sum, a_gradient,
                                    kWeightStride);
      for (uint32_t r = p.length(i); r < kMost; ++r) {
        std::fill_n(in + r * p.in_stride(), 4 * p.dim, 0.0f);
        a_gradient[r * kWeightStride] = 0.0f;
      }
      const float* const a = p.weights.data() + row * kWeightStride;
      ops::AttentionSum(shape, x + task.values, a, kWeightStride, x + task.sum);
      AttentionGradients g;
      g.v = x + task.values;
      g.q = x + task.target;
      g.a = a;
      g.a_stride = kWeightStride;
      g.sum_gradient = to + task.sum;
      g.inputs = p.by_inputs.data() + row * p.in_stride();
      g.inputs_stride = p.in_stride();
      ops::AttentionBackward(shape, g, to + task.values, to + task.target);
    }
  }
  std::vector<float> vectors, gradients, inputs, by_weights;
};

void CheckProblem(TestApi& test, const Problem& p) {
  const Right right(p);
  DeviceVector<uint32_t> lengths(test, p.lengths);
  DeviceVector<float> vectors(test, p.vectors), gradients(test, p.gradients);
  DeviceVector<float> weights(test, p.weights), by_inputs(test, p.by_inputs);
  DeviceVector<float> inputs(test, right.inputs.size(), 7.0f);
  DeviceVector<float> by_weights(test, right.by_weights.size(), 7.0f);
  AttentionTask task = p.Task();
  task.lengths = lengths.get() + 1;
  CudaApi& api = *test.api;
  const StreamHandle stream = test.stream.get();
  const Matrix x = {vectors.get(), p.stride}, to = {gradients.get(), p.stride};
  const Matrix a = {weights.get(), kWeightStride};
  REQUIRE(AttentionInputs(api, task, x, {inputs.get(), p.in_stride()}, stream).ok());
  CHECK(Differences(inputs.Get(), right.inputs) == 0);
  REQUIRE(
      AttentionWeightGradients(api, task, x, to, {by_weights.get(), kWeightStride}, stream).ok());
  CHECK(Differences(by_weights.Get(), right.by_weights) == 0);
  REQUIRE(AttentionSum(api, task, a, x, stream).ok());
  CHECK(Differences(vectors.Get(), right.vectors) == 0);
  REQUIRE(AttentionBackward(api, task, x, a, {by_inputs.get(), p.in_stride()}, to, stream).ok());
  CHECK(Differences(gradients.Get(), right.gradients) == 0);
}

TEST_CASE("attention is the host's, to the bit", "[ops][cuda][exact]") {
  for (TestApi& test : Apis()) {
    for (const uint32_t dim : {1u, 4u, 9u}) {
      INFO(test.name << ", dim " << dim);
      CheckProblem(test, Problem(dim));
    }
  }
}

}  // namespace
}  // namespace strata::ops::gpu

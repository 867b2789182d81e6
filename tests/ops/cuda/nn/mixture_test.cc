// Mixtures of experts against ops/nn, bit for bit.
#include "ops/cuda/nn/mixture.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

#include "ops/nn/mixture.h"
#include "tests/ops/cuda/api/test_apis.h"

namespace strata::ops::gpu {
namespace {

using testing::Apis;
using testing::DeviceVector;
using testing::Differences;
using testing::Random;
using testing::TestApi;

constexpr uint32_t kExamples = 110;

struct Problem {
  Problem(uint32_t experts, uint32_t tasks, uint32_t width)
      : task{kExamples, experts, tasks, width, (width + 4) / 4 * 4, (experts + 4) / 4 * 4} {
    Random random(experts + tasks + width);
    gates = random.Floats(kExamples * gates_stride());
    outputs = random.Floats(kExamples * outputs_stride());
    by_mixtures = random.Floats(kExamples * mixtures_stride());
  }
  uint32_t gates_stride() const { return task.tasks * task.gate_floats; }
  uint32_t outputs_stride() const { return task.experts * task.vector_floats; }
  uint32_t mixtures_stride() const { return task.tasks * task.vector_floats; }

  MixtureTask task;
  std::vector<float> gates, outputs, by_mixtures;
};

struct Right {
  explicit Right(const Problem& p)
      : weights(p.gates),
        mixtures(kExamples * p.mixtures_stride(), 7.0f),
        by_gates(p.gates.size(), 7.0f),
        by_outputs(p.outputs.size(), 7.0f) {
    for (uint32_t i = 0; i < kExamples; ++i) AddExample(p, i);
  }

  void AddExample(const Problem& p, uint32_t i) {
    const MixtureTask& task = p.task;
    const float* const outputs = p.outputs.data() + i * p.outputs_stride();
    const float* const by_mixtures = p.by_mixtures.data() + i * p.mixtures_stride();
    float* const gates = weights.data() + i * p.gates_stride();
    std::vector<const float*> experts, tasks;
    for (uint32_t e = 0; e < task.experts; ++e) experts.push_back(outputs + e * task.vector_floats);
    for (uint32_t t = 0; t < task.tasks; ++t) {
      float* const gate = gates + t * task.gate_floats;
      Softmax(task.experts, p.gates.data() + i * p.gates_stride() + t * task.gate_floats, gate);
      Mix(task.experts, gate, experts.data(), task.width,
          mixtures.data() + i * p.mixtures_stride() + t * task.vector_floats);
      tasks.push_back(by_mixtures + t * task.vector_floats);
      float* const by_gate = by_gates.data() + i * p.gates_stride() + t * task.gate_floats;
      for (uint32_t e = 0; e < task.experts; ++e) {
        by_gate[e] = Dot(task.width, experts[e], tasks[t]);
      }
      SoftmaxGradients(task.experts, gate, by_gate, by_gate);
    }
    for (uint32_t e = 0; e < task.experts; ++e) {
      std::vector<float> of_expert;
      for (uint32_t t = 0; t < task.tasks; ++t)
        of_expert.push_back(gates[t * task.gate_floats + e]);
      Mix(task.tasks, of_expert.data(), tasks.data(), task.width,
          by_outputs.data() + i * p.outputs_stride() + e * task.vector_floats);
    }
  }
  std::vector<float> weights, mixtures, by_gates, by_outputs;
};

void CheckProblem(TestApi& test, const Problem& p) {
  const Right right(p);
  DeviceVector<float> weights(test, p.gates), outputs(test, p.outputs);
  DeviceVector<float> mixtures(test, right.mixtures.size(), 7.0f), by_mixtures(test, p.by_mixtures);
  DeviceVector<float> by_gates(test, right.by_gates.size(), 7.0f);
  DeviceVector<float> by_outputs(test, right.by_outputs.size(), 7.0f);
  CudaApi& api = *test.api;
  const StreamHandle stream = test.stream.get();
  const Matrix gates = {weights.get(), p.gates_stride()};
  const Matrix experts = {outputs.get(), p.outputs_stride()};
  const Matrix by = {by_mixtures.get(), p.mixtures_stride()};
  REQUIRE(MixtureWeights(api, p.task, gates, stream).ok());
  CHECK(Differences(weights.Get(), right.weights) == 0);
  REQUIRE(
      MixExperts(api, p.task, gates, experts, {mixtures.get(), p.mixtures_stride()}, stream).ok());
  CHECK(Differences(mixtures.Get(), right.mixtures) == 0);
  REQUIRE(GateGradients(api, p.task, gates, experts, by, {by_gates.get(), p.gates_stride()}, stream)
              .ok());
  CHECK(Differences(by_gates.Get(), right.by_gates) == 0);
  REQUIRE(
      ExpertGradients(api, p.task, gates, by, {by_outputs.get(), p.outputs_stride()}, stream).ok());
  CHECK(Differences(by_outputs.Get(), right.by_outputs) == 0);
}

TEST_CASE("mixtures are the host's, to the bit", "[ops][cuda][exact]") {
  for (TestApi& test : Apis()) {
    for (const uint32_t experts : {1u, 3u, 8u}) {
      for (const uint32_t tasks : {1u, 2u}) {
        INFO(test.name << ", " << experts << " experts, " << tasks << " tasks");
        CheckProblem(test, Problem(experts, tasks, 4 * tasks + experts));
      }
    }
  }
}

}  // namespace
}  // namespace strata::ops::gpu

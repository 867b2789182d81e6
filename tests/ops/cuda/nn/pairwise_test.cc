// Pairwise dots against PairwiseDots of ops/nn/pairwise.h, bit for bit.
#include "ops/cuda/nn/pairwise.h"

#include <catch2/catch.hpp>
#include <vector>

#include "ops/cpu_features.h"
#include "ops/nn/gemm.h"
#include "ops/nn/pairwise.h"
#include "tests/ops/cuda/api/test_apis.h"

namespace strata::ops::gpu {
namespace {

using testing::Apis;
using testing::DeviceVector;
using testing::Differences;
using testing::Random;
using testing::TestApi;

TEST_CASE("dots of pairs and their gradients are the host's, to the bit", "[ops][cuda][exact]") {
  constexpr uint32_t kExamples = 7;
  for (TestApi& test : Apis()) {
    for (uint32_t vectors : {1u, 2u, 3u, 4u, 8u, 27u}) {
      for (uint32_t dim : {1u, 3u, 4u, 16u, 18u, 64u, 128u}) {
        const PairwiseDots host(GemmKernelOf(ActiveIsaLevel()), vectors, dim);
        const size_t pairs = host.pairs(), stride = vectors * dim + (dim % 4 == 0 ? 4 : 1);
        const size_t dots_stride = pairs + 3;
        const std::vector<float> t = Random(vectors * dim).Floats(kExamples * stride);
        const std::vector<float> dots_gradient = Random(dim).Floats(kExamples * dots_stride);
        std::vector<float> dots(kExamples * dots_stride, 5.0f), gradient(t.size(), 5.0f);
        AlignedFloats scratch;
        scratch.Reserve(host.scratch());
        host.Forward(kExamples, t.data(), stride, dots.data(), dots_stride, scratch.data());
        host.Backward(kExamples, t.data(), stride, dots_gradient.data(), dots_stride,
                      gradient.data(), scratch.data());

        DeviceVector<float> t_there(test, t), dots_there(test, dots.size(), 5.0f);
        DeviceVector<float> from(test, dots_gradient), to(test, t.size(), 5.0f);
        const PairwiseTask task = {kExamples, vectors, dim, t_there.get(), stride, dots_stride};
        REQUIRE(PairwiseForward(*test.api, task, dots_there.get(), test.stream.get()).ok());
        REQUIRE(PairwiseBackward(*test.api, task, from.get(), to.get(), test.stream.get()).ok());
        INFO(test.name << ", " << vectors << " vectors of " << dim);
        CHECK(Differences(dots_there.Get(), dots) == 0);
        CHECK(Differences(to.Get(), gradient) == 0);
      }
    }
    const PairwiseTask large = {1, 1000, 1000, nullptr, 0, 0};
    CHECK_THAT(std::string(PairwiseForward(*test.api, large, nullptr, test.stream.get()).message()),
               Catch::Contains("bytes of shared memory"));
  }
}

}  // namespace
}  // namespace strata::ops::gpu

// Several tasks' second order against plain loops, bit for bit.
#include "ops/cuda/nn/fm_heads.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

#include "ops/exact_math.h"
#include "tests/ops/cuda/api/test_apis.h"

namespace strata::ops::gpu {
namespace {

using testing::Apis;
using testing::DeviceVector;
using testing::Differences;
using testing::Random;
using testing::TestApi;

TEST_CASE("tasks weigh the elements each in its own way", "[ops][cuda][exact]") {
  constexpr uint32_t kExamples = 300;
  for (const uint32_t dim : {1u, 5u, 16u}) {
    for (const uint32_t tasks : {2u, 3u, 7u}) {
      const uint32_t stride = (tasks + 4) / 4 * 4;
      Random random(dim + tasks);
      const std::vector<float> weight = random.Floats(dim * tasks);
      const std::vector<float> terms = random.Floats(kExamples * dim);
      const std::vector<float> before = random.Floats(kExamples * stride);
      std::vector<float> logits = before, by_terms(kExamples * dim);
      for (uint32_t i = 0; i < kExamples; ++i) {
        for (uint32_t t = 0; t < tasks; ++t) {
          for (uint32_t d = 0; d < dim; ++d) {
            float& logit = logits[i * stride + t];
            logit = exact::Fma(1.0f + weight[d * tasks + t], terms[i * dim + d], logit);
            float& g = by_terms[i * dim + d];
            g = exact::Fma(before[i * stride + t], 1.0f + weight[d * tasks + t], g);
          }
        }
      }
      for (TestApi& test : Apis()) {
        INFO(test.name << ", dim " << dim << ", " << tasks << " tasks");
        DeviceVector<float> w(test, weight), x(test, terms), out(test, by_terms.size());
        DeviceVector<float> gradients(test, before), sums(test, before);
        const FmHeadsTask task = {kExamples, dim, tasks, w.get()};
        REQUIRE(AddFmHeads(*test.api, task, x.get(), {sums.get(), stride}, test.stream.get()).ok());
        REQUIRE(FmHeadGradients(*test.api, task, {gradients.get(), stride}, out.get(),
                                test.stream.get())
                    .ok());
        CHECK(Differences(sums.Get(), logits) == 0);
        CHECK(Differences(out.Get(), by_terms) == 0);
      }
    }
  }
}

}  // namespace
}  // namespace strata::ops::gpu

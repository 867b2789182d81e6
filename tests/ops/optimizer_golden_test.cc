#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "ops/cpu_features.h"
#include "ops/optimizer.h"
#include "tests/ops/golden_hash.h"
#include "tests/ops/optimizer_rows.h"

namespace strata::ops {
namespace {

using testing::Config;
using testing::kNan;
using testing::Rows;
using testing::Values;
using testing::Variants;

constexpr uint32_t kGoldenDims[] = {1, 2, 7, 8, 16, 17, 31, 32, 33, 100, 128, 129, 256, 300};

uint64_t HashOfUpdates(const std::vector<OptimizerConfig>& configs) {
  GoldenHash hash;
  for (const OptimizerConfig& config : configs) {
    for (uint32_t dim : kGoldenDims) {
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
        std::vector<uint8_t> outcomes(33);
        hash.Add(static_cast<uint32_t>(ApplyRows(config, {examples, 0.03f, powers.Correction(t)},
                                                 dim, 33, rows.weights.data(), rows.states.data(),
                                                 sums.data(), dim, outcomes.data())));
        for (uint8_t outcome : outcomes) {
          if (outcome == kRowClipped) hash.Add(uint32_t{outcome});
        }
      }
      hash.Add(rows.memory);
    }
  }
  return hash.value();
}

void CheckGolden(const std::vector<OptimizerConfig>& configs, uint64_t golden) {
  const IsaLevel supported = SetActiveIsaLevel(IsaLevel::kV3);
  CHECK(HashOfUpdates(configs) == golden);
  if (SupportedIsaLevel() >= IsaLevel::kV4) {
    SetActiveIsaLevel(IsaLevel::kV4);
    CHECK(HashOfUpdates(configs) == golden);
  } else {
    WARN("no AVX-512 here: its build was not compared");
  }
  SetActiveIsaLevel(supported);
}

TEST_CASE("golden bits of updates, for every instruction set", "[ops][optimizer][exact]") {
  CheckGolden(
      {Config(OptimizerKind::kSgd), Config(OptimizerKind::kAdagrad), Config(OptimizerKind::kAdam)},
      0x5eb9ef351b68f291);
  CheckGolden(Variants(), 0xf02bb43fefe27f66);
}

}  // namespace
}  // namespace strata::ops

// What the optimizer tests update: rows with guards around them, and the settings to try.
#ifndef STRATA_TESTS_OPS_OPTIMIZER_ROWS_H_
#define STRATA_TESTS_OPS_OPTIMIZER_ROWS_H_

#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "ops/optimizer.h"

namespace strata::ops::testing {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr OptimizerKind kKinds[] = {
    OptimizerKind::kSgd,  OptimizerKind::kAdagrad,        OptimizerKind::kAdam,
    OptimizerKind::kFtrl, OptimizerKind::kRowwiseAdagrad, OptimizerKind::kMomentum};
// Covers every code path: scalars, specialised, odd, one block exactly, several blocks.
inline constexpr uint32_t kDims[] = {1,  2,  3,   4,   5,   7,   8,   16,  17,  31,
                                     32, 33, 100, 128, 129, 255, 256, 257, 300, 700};

// Deterministic values in [-1, 1).
class Values {
 public:
  explicit Values(uint32_t seed) : state_(seed * 2654435761u + 1) {}
  float Next() {
    state_ = state_ * 1664525u + 1013904223u;
    return static_cast<float>(static_cast<int32_t>(state_)) * 0x1p-31f;
  }
  void Fill(std::vector<float>& out) {
    for (float& x : out) x = Next();
  }

 private:
  uint32_t state_;
};

// Rows in one block of memory, state right after the weights, with a guard float after each row.
struct Rows {
  Rows(const OptimizerConfig& config, uint32_t dim, size_t n) : n(n) {
    const uint32_t state = StateFloats(config.kind, dim);
    stride = dim + state + 1;
    memory.assign(n * stride, 7.0f);
    Values values(dim);
    for (size_t i = 0; i < n; ++i) {
      float* row = memory.data() + i * stride;
      for (uint32_t d = 0; d < dim; ++d) row[d] = values.Next();
      InitState(config, dim, row + dim);
      weights.push_back(row);
      states.push_back(row + dim);
    }
  }
  size_t n, stride;
  std::vector<float> memory;
  std::vector<float*> weights, states;
};

inline OptimizerConfig Config(OptimizerKind kind) {
  OptimizerConfig config;
  config.kind = kind;
  config.epsilon = kind == OptimizerKind::kAdam ? 1e-8f : 1e-10f;
  config.l1 = 0.3f;  // so that gradients around 1 make both zeros and other weights
  config.l2 = 0.2f;
  return config;
}

inline bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * 4) == 0;
}
// Every kind, and what can be put before it.
inline std::vector<OptimizerConfig> Variants() {
  std::vector<OptimizerConfig> all;
  for (OptimizerKind kind : kKinds) {
    OptimizerConfig config = Config(kind);
    config.learning_rate = 0.05f;
    all.push_back(config);
    if (kind == OptimizerKind::kMomentum) {
      config.nesterov = true;
      all.push_back(config);
    }
    config.clip_value = 0.6f;
    all.push_back(config);
    config.clip_norm = 0.9f;
    all.push_back(config);
    config.clip_value = 0.0f;
    if (kind != OptimizerKind::kFtrl) config.weight_decay = 0.1f;
    // Gradient and decay may cancel, and g / sqrt(g^2) says nothing of a g that is all rounding.
    config.epsilon = 1e-3f;
    all.push_back(config);
  }
  return all;
}

// One row's update from `weights`; returns its outcome.
inline uint8_t ApplyOne(const OptimizerConfig& config, const StepScalars& scalars,
                        std::vector<float>& weights, std::vector<float>& state,
                        const std::vector<float>& sums) {
  float *w = weights.data(), *s = state.data();
  uint8_t outcome = 9;
  const size_t refused = ApplyRows(config, scalars, static_cast<uint32_t>(weights.size()), 1, &w,
                                   &s, sums.data(), weights.size(), &outcome);
  CHECK(refused == (outcome == kRowRefused ? 1 : 0));
  return outcome;
}

}  // namespace strata::ops::testing

#endif  // STRATA_TESTS_OPS_OPTIMIZER_ROWS_H_

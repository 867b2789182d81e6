// The optimizers' equations in float64, to compare with.
#ifndef STRATA_TESTS_OPS_OPTIMIZER_REFERENCE_H_
#define STRATA_TESTS_OPS_OPTIMIZER_REFERENCE_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ops/optimizer.h"
#include "tests/ops/optimizer_rows.h"

namespace strata::ops::testing {

// ALGORITHMS.md section 1, row by row, in double. State is laid out as in a row.
struct Reference {
  OptimizerConfig config;
  uint32_t dim;
  std::vector<std::vector<double>> weights, states;

  Reference(const OptimizerConfig& config, uint32_t dim, const Rows& rows)
      : config(config), dim(dim) {
    for (size_t i = 0; i < rows.n; ++i) {
      weights.emplace_back(rows.weights[i], rows.weights[i] + dim);
      states.emplace_back(rows.states[i], rows.states[i] + StateFloats(config.kind, dim));
      if (config.kind != OptimizerKind::kFtrl) continue;
      // A row that starts from any weights: z such that w(z) at n = 0 gives them.
      for (uint32_t d = 0; d < dim; ++d) {
        const double w = weights[i][d];
        const double rate = config.learning_rate;
        states[i][d] = -w * (config.beta / rate + config.l2) - (w > 0 ? 1 : -1) * double{config.l1};
      }
    }
  }

  // REQUIRES (ftrl): the same rate in every step, that of the config.
  void Step(const std::vector<std::vector<double>>& gradients, double rate, uint64_t t) {
    for (size_t i = 0; i < weights.size(); ++i) {
      Row(Clipped(gradients[i], weights[i]), rate, t, weights[i], states[i]);
    }
  }

  std::vector<double> Clipped(std::vector<double> g, const std::vector<double>& w) const {
    double norm = 0;
    for (double& x : g) {
      const double limit = config.clip_value;
      if (limit > 0) x = x > limit ? limit : x < -limit ? -limit : x;
      norm += x * x;
    }
    norm = std::sqrt(norm);
    const double factor =
        config.clip_norm > 0 && norm > config.clip_norm ? config.clip_norm / norm : 1.0;
    for (size_t d = 0; d < g.size(); ++d) g[d] = g[d] * factor + config.weight_decay * w[d];
    return g;
  }

  void Row(const std::vector<double>& g, double rate, uint64_t t, std::vector<double>& w,
           std::vector<double>& s) const {
    if (config.kind == OptimizerKind::kRowwiseAdagrad) {
      double sum = 0;
      for (double x : g) sum += x * x;
      s[0] += sum / dim;
    }
    for (uint32_t d = 0; d < dim; ++d) {
      switch (config.kind) {
        case OptimizerKind::kSgd:
          w[d] -= rate * g[d];
          break;
        case OptimizerKind::kAdd:
          w[d] += g[d];
          break;
        case OptimizerKind::kMomentum:
          s[d] = config.momentum * s[d] + g[d];
          w[d] -= rate * (config.nesterov ? g[d] + config.momentum * s[d] : s[d]);
          break;
        case OptimizerKind::kAdagrad:
          s[d] += g[d] * g[d];
          w[d] -= rate * g[d] / (std::sqrt(s[d]) + config.epsilon);
          break;
        case OptimizerKind::kRowwiseAdagrad:
          w[d] -= rate * g[d] / (std::sqrt(s[0]) + config.epsilon);
          break;
        case OptimizerKind::kAdam: {
          const double b1 = config.beta1, b2 = config.beta2;
          double &m = s[d], &v = s[dim + d];
          m = b1 * m + (1 - b1) * g[d];
          v = b2 * v + (1 - b2) * g[d] * g[d];
          const double correction = std::sqrt(1 - std::pow(b2, t)) / (1 - std::pow(b1, t));
          w[d] -= rate * correction * m / (std::sqrt(v) + config.epsilon);
          break;
        }
        case OptimizerKind::kFtrl: {
          double &z = s[d], &n = s[dim + d];
          const double sigma = (std::sqrt(n + g[d] * g[d]) - std::sqrt(n)) / rate;
          z += g[d] - sigma * w[d];
          n += g[d] * g[d];
          const double sign = z > 0 ? 1 : -1;
          w[d] = std::abs(z) <= config.l1
                     ? 0
                     : -(z - sign * config.l1) / ((config.beta + std::sqrt(n)) / rate + config.l2);
          break;
        }
      }
    }
  }
};

}  // namespace strata::ops::testing

#endif  // STRATA_TESTS_OPS_OPTIMIZER_REFERENCE_H_

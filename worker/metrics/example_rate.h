// Examples per second between two moments.
// Tested by tests/worker/metrics/training_stats_test.cc
// Tested by tests/worker/eval/boundary_test.cc
#ifndef STRATA_WORKER_METRICS_EXAMPLE_RATE_H_
#define STRATA_WORKER_METRICS_EXAMPLE_RATE_H_

#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace strata {

// How many examples there were at a moment.
struct ExampleMark {
  absl::Time at;
  uint64_t examples = 0;
};

// None where no time has passed in between.
inline std::optional<double> ExampleRate(const ExampleMark& from, const ExampleMark& to) {
  if (to.at <= from.at || to.examples < from.examples) return std::nullopt;
  return static_cast<double>(to.examples - from.examples) / absl::ToDoubleSeconds(to.at - from.at);
}

}  // namespace strata

#endif  // STRATA_WORKER_METRICS_EXAMPLE_RATE_H_

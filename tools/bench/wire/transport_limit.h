// What the transport alone can do: a process that answers and does nothing else.
#ifndef STRATA_TOOLS_BENCH_WIRE_TRANSPORT_LIMIT_H_
#define STRATA_TOOLS_BENCH_WIRE_TRANSPORT_LIMIT_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "tools/bench/base/figure.h"

namespace strata::bench {

struct TransportLimit {
  double calls_per_second = 0;
  double client_cpu = 0;  // seconds a call, of this process
};

// With messages of these sizes, over half of the options' seconds.
absl::StatusOr<TransportLimit> MeasureTransport(const BenchOptions& o, size_t request,
                                                size_t reply);

}  // namespace strata::bench

#endif  // STRATA_TOOLS_BENCH_WIRE_TRANSPORT_LIMIT_H_

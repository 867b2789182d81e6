// wire_pull, wire_push: one server process and one client process over gRPC.
#ifndef STRATA_TOOLS_BENCH_WIRE_BENCH_H_
#define STRATA_TOOLS_BENCH_WIRE_BENCH_H_

#include <vector>

#include "tools/bench/base/figure.h"

namespace strata::bench {

// 10 million rows of 16 floats in DRAM, 100,000 distinct keys a request, 4 requests in flight.
// The limit is the same messages over the same transport with nothing done to them. The peer's
// figures are those of ps-lite on another machine (constants, stated in RESULTS.md).
std::vector<NamedBenchmark> WireBenchmarks();

}  // namespace strata::bench

#endif  // STRATA_TOOLS_BENCH_WIRE_BENCH_H_

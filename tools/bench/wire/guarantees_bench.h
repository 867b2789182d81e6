// wire_replicated and wire_tls: what copies and certificates cost pulls and pushes.
#ifndef STRATA_TOOLS_BENCH_WIRE_GUARANTEES_BENCH_H_
#define STRATA_TOOLS_BENCH_WIRE_GUARANTEES_BENCH_H_

#include <vector>

#include "tools/bench/base/figure.h"

namespace strata::bench {

std::vector<NamedBenchmark> WireGuaranteeBenchmarks();

}  // namespace strata::bench

#endif  // STRATA_TOOLS_BENCH_WIRE_GUARANTEES_BENCH_H_

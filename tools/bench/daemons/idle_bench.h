// daemons: processes that have nothing to do, that start, and that end.
#ifndef STRATA_TOOLS_BENCH_DAEMONS_IDLE_BENCH_H_
#define STRATA_TOOLS_BENCH_DAEMONS_IDLE_BENCH_H_

#include <vector>

#include "tools/bench/base/figure.h"

namespace strata::bench {

std::vector<NamedBenchmark> IdleBenchmarks();

}  // namespace strata::bench

#endif  // STRATA_TOOLS_BENCH_DAEMONS_IDLE_BENCH_H_

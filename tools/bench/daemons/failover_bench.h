// failover_*: from the kill of a process to the next answer, with workers that train meanwhile.
#ifndef STRATA_TOOLS_BENCH_DAEMONS_FAILOVER_BENCH_H_
#define STRATA_TOOLS_BENCH_DAEMONS_FAILOVER_BENCH_H_

#include <vector>

#include "tools/bench/base/figure.h"

namespace strata::bench {

std::vector<NamedBenchmark> FailoverBenchmarks();

}  // namespace strata::bench

#endif  // STRATA_TOOLS_BENCH_DAEMONS_FAILOVER_BENCH_H_

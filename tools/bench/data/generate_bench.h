// generate_criteo: planted rows to a file on one core.
#ifndef STRATA_TOOLS_BENCH_DATA_GENERATE_BENCH_H_
#define STRATA_TOOLS_BENCH_DATA_GENERATE_BENCH_H_

#include <vector>

#include "tools/bench/base/figure.h"

namespace strata::bench {

// Limit: writing a text of the same length to a file, in turn.
std::vector<NamedBenchmark> GenerateBenchmarks();

}  // namespace strata::bench

#endif  // STRATA_TOOLS_BENCH_DATA_GENERATE_BENCH_H_

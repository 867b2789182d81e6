// hit_rate: which share of references each eviction policy serves from DRAM, beside Belady's
// optimum and perfect LFU.
#ifndef STRATA_TOOLS_BENCH_HIT_RATE_BENCH_H_
#define STRATA_TOOLS_BENCH_HIT_RATE_BENCH_H_

#include <vector>

#include "tools/bench/base/figure.h"

namespace strata::bench {

std::vector<NamedBenchmark> HitRateBenchmarks();

}  // namespace strata::bench

#endif  // STRATA_TOOLS_BENCH_HIT_RATE_BENCH_H_

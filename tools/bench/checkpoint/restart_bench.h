// restart: a killed server, from the start of its process to the first pull that it serves.
#ifndef STRATA_TOOLS_BENCH_CHECKPOINT_RESTART_BENCH_H_
#define STRATA_TOOLS_BENCH_CHECKPOINT_RESTART_BENCH_H_

#include <vector>

#include "tools/bench/base/figure.h"

namespace strata::bench {

// 1 GiB of images (13.5 million rows of 16 floats) and up to 256 MiB of log, not in the page cache.
std::vector<NamedBenchmark> RestartBenchmarks();

}  // namespace strata::bench

#endif  // STRATA_TOOLS_BENCH_CHECKPOINT_RESTART_BENCH_H_

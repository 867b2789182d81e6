// tiered_training: DeepFM with DRAM for a tenth of its rows beside the same job without a limit.
#ifndef STRATA_TOOLS_BENCH_TRAIN_TIERED_BENCH_H_
#define STRATA_TOOLS_BENCH_TRAIN_TIERED_BENCH_H_

#include <vector>

#include "tools/bench/base/figure.h"

namespace strata::bench {

std::vector<NamedBenchmark> TieredTrainingBenchmarks();

}  // namespace strata::bench

#endif  // STRATA_TOOLS_BENCH_TRAIN_TIERED_BENCH_H_

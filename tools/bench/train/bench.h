// train_lr, train_fm, train_deepfm, train_dlrm, train_wide_deep: examples per second of a whole
// embedded job, input in memory.
#ifndef STRATA_TOOLS_BENCH_TRAIN_BENCH_H_
#define STRATA_TOOLS_BENCH_TRAIN_BENCH_H_

#include <vector>

#include "tools/bench/base/figure.h"

namespace strata::bench {

// Bsp, durability logged, one lane of 4096, Adagrad, 10 million ids, dim 16: the shapes of
// PyTorch's program in the baselines folder, which is run in turn where that folder is given.
std::vector<NamedBenchmark> TrainBenchmarks();

}  // namespace strata::bench

#endif  // STRATA_TOOLS_BENCH_TRAIN_BENCH_H_

// log: what the update log costs, and how fast it is replayed.
#ifndef STRATA_TOOLS_BENCH_CHECKPOINT_LOG_BENCH_H_
#define STRATA_TOOLS_BENCH_CHECKPOINT_LOG_BENCH_H_

#include <vector>

#include "tools/bench/base/figure.h"

namespace strata::bench {

// Levels in turn within the same run: train_lr, train_fm and train_deepfm embedded, and saturated
// pushes over gRPC; then the replay of a log of one shard on one core.
std::vector<NamedBenchmark> LogBenchmarks();

}  // namespace strata::bench

#endif  // STRATA_TOOLS_BENCH_CHECKPOINT_LOG_BENCH_H_

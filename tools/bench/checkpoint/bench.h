// checkpoint: a checkpoint of 4 GiB while DeepFM trains, an increment on it, and one with training
// stopped.
#ifndef STRATA_TOOLS_BENCH_CHECKPOINT_BENCH_H_
#define STRATA_TOOLS_BENCH_CHECKPOINT_BENCH_H_

#include <vector>

#include "tools/bench/base/figure.h"

namespace strata::bench {

// Embedded, bsp, durability memory, Adagrad, dim 16; the job starts from a made-up model of 4 GiB
// (STRATA_BENCH_GIB: another size). Beside each other in one run: training alone, then with a
// checkpoint at 300 MiB/s, in turns; and the disk's sequential writes.
std::vector<NamedBenchmark> CheckpointBenchmarks();

}  // namespace strata::bench

#endif  // STRATA_TOOLS_BENCH_CHECKPOINT_BENCH_H_

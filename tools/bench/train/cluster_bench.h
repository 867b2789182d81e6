// train_deepfm_cluster: examples per second of a cluster of processes, input from a file.
#ifndef STRATA_TOOLS_BENCH_TRAIN_CLUSTER_BENCH_H_
#define STRATA_TOOLS_BENCH_TRAIN_CLUSTER_BENCH_H_

#include <vector>

#include "tools/bench/base/figure.h"

namespace strata::bench {

// The job of train_deepfm on one strata-server and one strata-worker process over gRPC, beside
// PyTorch's program in one process.
std::vector<NamedBenchmark> TrainClusterBenchmarks();

}  // namespace strata::bench

#endif  // STRATA_TOOLS_BENCH_TRAIN_CLUSTER_BENCH_H_

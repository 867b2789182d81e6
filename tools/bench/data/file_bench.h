// train_lr_file, train_fm_file, train_deepfm_file: what reading from a file costs training.
#ifndef STRATA_TOOLS_BENCH_DATA_FILE_BENCH_H_
#define STRATA_TOOLS_BENCH_DATA_FILE_BENCH_H_

#include <vector>

#include "tools/bench/base/figure.h"

namespace strata::bench {

// Examples per second of an embedded job (as in tools/bench/train/bench.h) over a Criteo TSV file
// in the page cache, shuffled, beside those over the same batches already parsed in memory, in
// turn. The index pass is not in the time.
std::vector<NamedBenchmark> FileBenchmarks();

}  // namespace strata::bench

#endif  // STRATA_TOOLS_BENCH_DATA_FILE_BENCH_H_

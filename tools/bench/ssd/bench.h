// ssd: the SSD tiers beside the disk's limit and RocksDB as a plain embedding store.
#ifndef STRATA_TOOLS_BENCH_SSD_BENCH_H_
#define STRATA_TOOLS_BENCH_SSD_BENCH_H_

#include <vector>

#include "tools/bench/base/figure.h"

namespace strata::bench {

// Rows of 128 bytes, 20 million of them (STRATA_SSD_ROWS: another number), direct IO, 256 MiB of
// DRAM for everything. Uniform batches against the tier alone, in turn with 4 KiB reads at random
// places of its file; batches of 4096 distinct keys by Zipf 1.05 through a tiered table; with
// baselines, in turn with rb.cc.
std::vector<NamedBenchmark> SsdBenchmarks();

}  // namespace strata::bench

#endif  // STRATA_TOOLS_BENCH_SSD_BENCH_H_

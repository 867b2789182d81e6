// table: the DRAM table beside the flat map that is its limit, and how it grows.
#ifndef STRATA_TOOLS_BENCH_TABLE_BENCH_H_
#define STRATA_TOOLS_BENCH_TABLE_BENCH_H_

#include <vector>

#include "tools/bench/base/figure.h"

namespace strata::bench {

// 10 million rows of 16 weights, batches of 100,000 distinct keys in order of position, as a server
// gets them; two threads have a shard each. Limit: FlatTable, in turn. "table": a RowTable by
// Resolve in a server's chunks and a copy or ops::ApplyRows; "shard": all that a server does with
// them (ShardTable: metadata, outcomes, births). Then a table of 1 to 20 million such rows:
// the longest call and the most bytes per row on the way. With --baselines, that folder's
// limits/hash.cc is built and run once as the peer. Memory: 6 GiB.
std::vector<NamedBenchmark> TableBenchmarks();

}  // namespace strata::bench

#endif  // STRATA_TOOLS_BENCH_TABLE_BENCH_H_

// parse_criteo: text to hashed batches on one core.
#ifndef STRATA_TOOLS_BENCH_DATA_PARSE_BENCH_H_
#define STRATA_TOOLS_BENCH_DATA_PARSE_BENCH_H_

#include <vector>

#include "tools/bench/base/figure.h"

namespace strata::bench {

// Limit: finding the separators of the same text by memchr's speed, measured in turn.
std::vector<NamedBenchmark> ParseBenchmarks();

}  // namespace strata::bench

#endif  // STRATA_TOOLS_BENCH_DATA_PARSE_BENCH_H_

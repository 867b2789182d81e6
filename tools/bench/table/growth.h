// How a DRAM table grows: pauses and bytes.
#ifndef STRATA_TOOLS_BENCH_TABLE_GROWTH_H_
#define STRATA_TOOLS_BENCH_TABLE_GROWTH_H_

#include "absl/status/status.h"
#include "tools/bench/base/figure.h"

namespace strata::bench {

// Grows a table of rows of 16 weights from 1 to 20 million rows in calls of a server's chunk, and
// reports the longest call (by the clock, and by the thread's CPU time, which other work on the
// machine does not lengthen), the time per row, and the most bytes per row beyond weights and
// position: as the table counts them, at every call, and as the kernel does (resident memory of the
// process above its start), at every hundredth of growth.
absl::Status MeasureGrowth(const BenchOptions& options, const Report& report);

}  // namespace strata::bench

#endif  // STRATA_TOOLS_BENCH_TABLE_GROWTH_H_

// Resident memory of a server and a worker under a DRAM limit, beside what `strata estimate` says.
#ifndef STRATA_TOOLS_BENCH_TRAIN_TIERED_MEMORY_H_
#define STRATA_TOOLS_BENCH_TRAIN_TIERED_MEMORY_H_

#include <cstdint>

#include "absl/status/status.h"
#include "proto/strata/job.pb.h"
#include "tools/bench/base/figure.h"

namespace strata::bench {

// Trains `job`, whose dramBytesPerServer is set, on processes of their own, from a file that names
// each of `ids` ids once and goes on with batches of ids by Zipf's law; reports what each process
// then has resident, with the estimate for that file as the limit.
absl::Status MeasureTieredMemory(const BenchOptions& o, const TrainingJob& job, uint64_t ids,
                                 const Report& report);

}  // namespace strata::bench

#endif  // STRATA_TOOLS_BENCH_TRAIN_TIERED_MEMORY_H_

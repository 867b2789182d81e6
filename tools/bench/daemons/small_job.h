// A job that trains for as long as anybody looks, with little to compute.
#ifndef STRATA_TOOLS_BENCH_DAEMONS_SMALL_JOB_H_
#define STRATA_TOOLS_BENCH_DAEMONS_SMALL_JOB_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "proto/strata/job.pb.h"

namespace strata::bench {

inline constexpr uint32_t kSmallBatch = 256;

// Lr, bsp, two lanes of kSmallBatch lines on one of the servers; the input is made in `directory`.
absl::StatusOr<TrainingJob> MakeSmallJob(const std::string& directory);

}  // namespace strata::bench

#endif  // STRATA_TOOLS_BENCH_DAEMONS_SMALL_JOB_H_

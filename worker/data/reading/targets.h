// Whether the lines of a run teach a model anything.
// Tested by tests/e2e/daily_test.cc
#ifndef STRATA_WORKER_DATA_READING_TARGETS_H_
#define STRATA_WORKER_DATA_READING_TARGETS_H_

#include <functional>

#include "absl/status/status.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "worker/data/reading/batch_source.h"

namespace strata {

// The search of the index pass (TargetSearch), once more where the run reads new files alone: the
// index pass saw all of the job's. `index` is what the run reads, and `source` is of it. Reads from
// the first line on until all was found. INVALID_ARGUMENT: that of TargetSearch; CANCELLED:
// `cancelled` said so, which may be empty; others: `source`'s.
absl::Status CheckTargets(const JobSpec& spec, const InputIndex& index, BatchSource* source,
                          const std::function<bool()>& cancelled);

}  // namespace strata

#endif  // STRATA_WORKER_DATA_READING_TARGETS_H_

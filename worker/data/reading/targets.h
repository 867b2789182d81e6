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

// Looks for a line of a weight above 0 that has a label, where a job's labels may be empty or its
// lines have weights. `index` is what this run reads, and `source` is of it: a job that resumes
// with more files reads the new ones alone, where the index pass saw all. Reads from the first line
// on until there is one. INVALID_ARGUMENT names the files and the columns; CANCELLED: `cancelled`
// said so, which may be empty; others: `source`'s.
absl::Status CheckTargets(const JobSpec& spec, const InputIndex& index, BatchSource* source,
                          const std::function<bool()>& cancelled);

}  // namespace strata

#endif  // STRATA_WORKER_DATA_READING_TARGETS_H_

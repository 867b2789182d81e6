// Where a worker's batches come from.
// Tested by tests/worker/data/reading/file_batch_source_test.cc
#ifndef STRATA_WORKER_DATA_READING_BATCH_SOURCE_H_
#define STRATA_WORKER_DATA_READING_BATCH_SOURCE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/core/ids.h"
#include "worker/step/batch.h"

namespace strata {

// Gives batches by place (worker/data/index/epoch_plan.h): any order of calls gives the same
// batches, ascending order is fast. Thread-safe; calls for different lanes or tasks run side by
// side, those for the same one take turns.
//
// A bad line makes its batch smaller and counts in Batch.bad_lines; where the job allows none it is
// INVALID_ARGUMENT with "file:line:column: reason". Other errors: the files are not what was
// indexed (FAILED_PRECONDITION), cannot be opened or read (NOT_FOUND, PERMISSION_DENIED,
// UNAVAILABLE), or hold a line over the limit (INVALID_ARGUMENT).
class BatchSource {
 public:
  virtual ~BatchSource() = default;

  // Bsp: the lane's batch of a global step (from 1).
  virtual absl::Status Read(Step step, LaneId lane, Batch* out) = 0;

  // Async: window `window` (from 0) of a task.
  virtual absl::Status ReadWindow(TaskId task, uint64_t window, Batch* out) = 0;

  // Evaluation: lines from `first` on (from 0) over all files in order, up to the end or the limit.
  // Returns how many were read; none only at the end. REQUIRES: most.lines >= 1.
  virtual absl::StatusOr<uint64_t> ReadLines(uint64_t first, const BatchLimit& most,
                                             Batch* out) = 0;

  // "file:line:column: reason" of the first bad line met so far; empty: none.
  virtual std::string first_bad_line() const = 0;
};

// ReadLines of a source of which `lines` were indexed, where some of these are left: reads at least
// one. INTERNAL: the source ends before them. REQUIRES: first < lines.
absl::StatusOr<uint64_t> ReadIndexedLines(BatchSource* source, uint64_t first, uint64_t lines,
                                          const BatchLimit& most, Batch* out);

}  // namespace strata

#endif  // STRATA_WORKER_DATA_READING_BATCH_SOURCE_H_

// Whether a job's held-out lines can be evaluated: found before it trains, as its last evaluation
// is too late to learn it.
#ifndef STRATA_WORKER_DATA_READING_HELD_OUT_H_
#define STRATA_WORKER_DATA_READING_HELD_OUT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "proto/strata/job.pb.h"
#include "worker/data/files/text_files.h"
#include "worker/data/reading/batch_source.h"

namespace strata {

struct HeldOutLines {
  uint64_t bad_lines = 0;      // each evaluation leaves them out
  std::string first_bad_line;  // "file:line:column: reason"; empty: none is bad
};

// Reads all `lines` of `source`, which is of the held-out files. INVALID_ARGUMENT: more than
// spec.data.maxBadLines are bad, with the first one's file, line, column and reason; or
// spec.evaluation.patience is set, and the lines do not define what it goes by: AUC of the first
// label needs both classes, the loss of one that is not binary a line that has it. CANCELLED:
// `cancelled` said so, which may be empty; others: the source's.
absl::StatusOr<HeldOutLines> CheckHeldOut(const JobSpec& spec, uint64_t lines, BatchSource* source,
                                          const Cancelled& cancelled);

}  // namespace strata

#endif  // STRATA_WORKER_DATA_READING_HELD_OUT_H_

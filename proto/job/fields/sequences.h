// The sequences of a job, and what din weighs their values by.
#ifndef STRATA_PROTO_JOB_FIELDS_SEQUENCES_H_
#define STRATA_PROTO_JOB_FIELDS_SEQUENCES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/strata/job.pb.h"

namespace strata {

// A field whose values stay apart, in order. Fields go by Batch.fields.
struct SequenceShape {
  std::string name;
  uint32_t field = 0;
  uint32_t max_length = 0;
  uint32_t target = 0;  // the one categorical field of the same table
};

// In the order of their fields; `fields` as PlanFields takes it. `spec` has its defaults resolved.
// INVALID_ARGUMENT names a sequence that has no target, or several.
absl::StatusOr<std::vector<SequenceShape>> SequencesOf(const JobSpec& spec, uint32_t fields);

// What people who chose din for its attention are to know where there is nothing that it could
// weigh: a warning, or empty.
std::string NothingToAttend(const JobSpec& spec);

}  // namespace strata

#endif  // STRATA_PROTO_JOB_FIELDS_SEQUENCES_H_

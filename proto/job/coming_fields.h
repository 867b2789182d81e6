// Fields of the job file whose parts are not built yet: a job that gives one is refused, and
// `strata explain` leaves them out. Whoever builds a part takes its fields from the list.
// Tested by tests/proto/job/job_spec_test.cc
#ifndef STRATA_PROTO_JOB_COMING_FIELDS_H_
#define STRATA_PROTO_JOB_COMING_FIELDS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/strata/job.pb.h"

namespace strata::spec {

// `path`: as "spec.tables".
bool IsComing(absl::string_view path);

// INVALID_ARGUMENT names the first that is given.
absl::Status CheckComing(const TrainingJob& job);

}  // namespace strata::spec

#endif  // STRATA_PROTO_JOB_COMING_FIELDS_H_

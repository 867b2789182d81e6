// Fields of formats other than csv, which say themselves what fields there are: a job names them,
// and says where their rows lie.
// Tested by tests/proto/job/fields/field_spec_test.cc
#ifndef STRATA_PROTO_JOB_FIELDS_FORMAT_FIELDS_H_
#define STRATA_PROTO_JOB_FIELDS_FORMAT_FIELDS_H_

#include "absl/status/status.h"
#include "proto/strata/job.pb.h"

namespace strata::spec {

// `job` is not of csv, and its fields have columns and kinds. INVALID_ARGUMENT: a column that the
// format does not have, one that is named twice, or more than a name and a table.
absl::Status CheckFormatFields(const JobSpec& job);

}  // namespace strata::spec

#endif  // STRATA_PROTO_JOB_FIELDS_FORMAT_FIELDS_H_

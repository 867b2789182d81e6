// Defaults and limits of spec.data.
// Tested by tests/proto/job/job_spec_test.cc
#ifndef STRATA_PROTO_JOB_DATA_SPEC_H_
#define STRATA_PROTO_JOB_DATA_SPEC_H_

#include "absl/status/status.h"
#include "proto/strata/job.pb.h"

namespace strata::spec {

// See ResolveJob (job_spec.h). Reads of the job whether there is spec.fields.
absl::Status ResolveData(JobSpec& job);

// Whether spec.data.columns has no more features than spec.fields may name.
absl::Status CheckColumnCount(const DataSpec& data);

// Whether one of the files is "-".
bool ReadsStandardInput(const DataSpec& data);

}  // namespace strata::spec

#endif  // STRATA_PROTO_JOB_DATA_SPEC_H_

// Defaults and limits of spec.fields.
#ifndef STRATA_PROTO_JOB_FIELDS_FIELD_SPEC_H_
#define STRATA_PROTO_JOB_FIELDS_FIELD_SPEC_H_

#include "absl/status/status.h"
#include "proto/strata/job.pb.h"

namespace strata::spec {

// See ResolveJob (job_spec.h). Reads what the job says of its data, tables, labels and model, whose
// defaults are resolved; without spec.fields it does nothing. Stays absent: hashSeed, whose default
// another part of the job gives, and defaultValue, which CheckDefaults checks.
absl::Status ResolveFields(JobSpec& job);

// Whether each numeric field can read its defaultValue.
absl::Status CheckDefaults(const JobSpec& job);

}  // namespace strata::spec

#endif  // STRATA_PROTO_JOB_FIELDS_FIELD_SPEC_H_

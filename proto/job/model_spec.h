// Defaults and limits of spec.model.
#ifndef STRATA_PROTO_JOB_MODEL_SPEC_H_
#define STRATA_PROTO_JOB_MODEL_SPEC_H_

#include "absl/status/status.h"
#include "proto/strata/job.pb.h"

namespace strata::spec {

// See ResolveJob (job_spec.h).
absl::Status ResolveModel(ModelSpec& model);

}  // namespace strata::spec

#endif  // STRATA_PROTO_JOB_MODEL_SPEC_H_

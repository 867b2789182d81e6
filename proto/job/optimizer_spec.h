// Defaults and limits of spec.optimizer.
#ifndef STRATA_PROTO_JOB_OPTIMIZER_SPEC_H_
#define STRATA_PROTO_JOB_OPTIMIZER_SPEC_H_

#include "absl/status/status.h"
#include "proto/strata/job.pb.h"

namespace strata::spec {

// See ResolveJob (job_spec.h). `model` is resolved: it decides whether `linear` has a use.
absl::Status ResolveOptimizers(const ModelSpec& model, OptimizersSpec& optimizers);

}  // namespace strata::spec

#endif  // STRATA_PROTO_JOB_OPTIMIZER_SPEC_H_

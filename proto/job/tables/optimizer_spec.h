// Defaults and limits of spec.optimizer, and of the optimizers of spec.tables.
#ifndef STRATA_PROTO_JOB_TABLES_OPTIMIZER_SPEC_H_
#define STRATA_PROTO_JOB_TABLES_OPTIMIZER_SPEC_H_

#include <string>

#include "absl/status/status.h"
#include "proto/strata/job.pb.h"

namespace strata::spec {

// See ResolveJob (job_spec.h). `model` is resolved: it decides whether `linear` has a use.
absl::Status ResolveOptimizers(const ModelSpec& model, OptimizersSpec& optimizers);

// The optimizers of a table of spec.tables, whose path is `at`. `optimizers` are resolved. One
// without a type is as the job's, but for what it gives.
absl::Status ResolveTableOptimizers(const std::string& at, const ModelSpec& model,
                                    const OptimizersSpec& optimizers, TableConfig& table);

}  // namespace strata::spec

#endif  // STRATA_PROTO_JOB_TABLES_OPTIMIZER_SPEC_H_

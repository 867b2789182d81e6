// From an optimizer of a job file to the values that rows are updated by.
// Tested by tests/proto/job/tables/optimizer_spec_test.cc
#ifndef STRATA_PROTO_JOB_TABLES_MAKE_OPTIMIZER_H_
#define STRATA_PROTO_JOB_TABLES_MAKE_OPTIMIZER_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/core/table_spec.h"
#include "proto/strata/job.pb.h"

namespace strata {

// `config` has its defaults resolved (job_spec.h); `field` is its path there. INVALID_ARGUMENT: a
// type or schedule that does not exist.
absl::StatusOr<OptimizerSpec> MakeOptimizer(absl::string_view field, const OptimizerConfig& config);

}  // namespace strata

#endif  // STRATA_PROTO_JOB_TABLES_MAKE_OPTIMIZER_H_

// Defaults and limits of spec.tables.
#ifndef STRATA_PROTO_JOB_TABLES_TABLES_SPEC_H_
#define STRATA_PROTO_JOB_TABLES_TABLES_SPEC_H_

#include "absl/status/status.h"
#include "proto/strata/job.pb.h"

namespace strata::spec {

// That tables have names, each its own. Fields name tables: it is asked before they are resolved.
absl::Status CheckTableNames(const JobSpec& job);

// See ResolveJob (job_spec.h). REQUIRES: CheckTableNames is OK. All but spec.tables is resolved.
// Where the job file says which fields the data have, also that each has a table; else the index
// tells (model_tables.h).
absl::Status ResolveTables(JobSpec& job);

}  // namespace strata::spec

#endif  // STRATA_PROTO_JOB_TABLES_TABLES_SPEC_H_

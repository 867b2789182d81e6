// Defaults and limits of spec.worker.
// Tested by tests/proto/job/job_spec_test.cc
#ifndef STRATA_PROTO_JOB_WORKER_SPEC_H_
#define STRATA_PROTO_JOB_WORKER_SPEC_H_

#include "absl/status/status.h"
#include "proto/strata/job.pb.h"

namespace strata::spec {

// See ResolveJob (job_spec.h).
absl::Status ResolveWorker(WorkerSpec& worker);

}  // namespace strata::spec

#endif  // STRATA_PROTO_JOB_WORKER_SPEC_H_

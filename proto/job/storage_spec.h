// Defaults and limits of spec.storage and spec.recovery.
// Tested by tests/proto/job/job_spec_test.cc
#ifndef STRATA_PROTO_JOB_STORAGE_SPEC_H_
#define STRATA_PROTO_JOB_STORAGE_SPEC_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/strata/job.pb.h"

namespace strata::spec {

// See ResolveJob (job_spec.h).
absl::Status ResolveStorage(const ReplicasSpec& replicas, StorageSpec& storage);
// The default of replaceAfter is the cluster's: it stays absent.
absl::Status CheckRecovery(const RecoverySpec& recovery);

// spec.recovery.replaceAfter of a checked job; `otherwise` where it is not given.
absl::Duration ReplaceAfter(const RecoverySpec& recovery, absl::Duration otherwise);

}  // namespace strata::spec

#endif  // STRATA_PROTO_JOB_STORAGE_SPEC_H_

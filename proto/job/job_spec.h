// Meaning of a job file: defaults, limits and byte sizes. Used by whoever reads or accepts a job.
#ifndef STRATA_PROTO_JOB_JOB_SPEC_H_
#define STRATA_PROTO_JOB_JOB_SPEC_H_

#include "absl/status/status.h"
#include "proto/job/checks/byte_size.h"  // IWYU pragma: export
#include "proto/strata/job.pb.h"

namespace strata {

// Fills every absent field with the default that its comment in job.proto states, and checks every
// value. INVALID_ARGUMENT names the field by its path in the file ("spec.training.batchSize"), the
// value, the limit, and what to do. Idempotent. Three fields stay absent, because their defaults
// are those of the machine that uses them or of the cluster: spec.training.threads,
// spec.storage.shardsPerServer and spec.recovery.replaceAfter.
// spec.data.columns.delimiter becomes the character itself.
absl::Status ResolveJob(TrainingJob& job);

// The same of a job that trains, which an older scheduler may have accepted: it did not refuse
// every number of spec.fields[].defaultValue that lines cannot have, nor a short form of more than
// 65,536 features. Such a job goes on as before: a line that needs that default is a bad one, and
// the others are read.
absl::Status ResolveAccepted(TrainingJob& job);

}  // namespace strata

#endif  // STRATA_PROTO_JOB_JOB_SPEC_H_

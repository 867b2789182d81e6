// Meaning of a job file: defaults, limits and byte sizes. Used by whoever reads or accepts a job.
#ifndef STRATA_PROTO_CORE_JOB_SPEC_H_
#define STRATA_PROTO_CORE_JOB_SPEC_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/strata/job.pb.h"

namespace strata {

// Fills every absent field with the default that its comment in job.proto states, and checks every
// value. INVALID_ARGUMENT names the field by its path in the file ("spec.training.batchSize"), the
// value, the limit, and what to do. Idempotent. Two fields stay absent, because their defaults are
// those of the machine that uses them: spec.training.threads and spec.storage.shardsPerServer.
// spec.data.columns.delimiter becomes the character itself.
absl::Status ResolveJob(TrainingJob& job);

// "4MiB", "1.5GiB", "1048576", "2GB" (powers of 1000 without the i). INVALID_ARGUMENT otherwise.
absl::StatusOr<uint64_t> ParseBytes(absl::string_view text);

}  // namespace strata

#endif  // STRATA_PROTO_CORE_JOB_SPEC_H_

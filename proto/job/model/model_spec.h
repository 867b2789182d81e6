// Defaults and limits of spec.model.
#ifndef STRATA_PROTO_JOB_MODEL_MODEL_SPEC_H_
#define STRATA_PROTO_JOB_MODEL_MODEL_SPEC_H_

#include <cstdint>

#include "absl/status/status.h"
#include "proto/strata/job.pb.h"

namespace strata::spec {

inline constexpr uint32_t kDefaultEmbeddingDim = 16;

// See ResolveJob (job_spec.h).
absl::Status ResolveModel(ModelSpec& model);

// What din alone reads. Wants model and fields resolved.
absl::Status ResolveAttention(JobSpec& job);

}  // namespace strata::spec

#endif  // STRATA_PROTO_JOB_MODEL_MODEL_SPEC_H_

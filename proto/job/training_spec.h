// Defaults and limits of spec.training, spec.evaluation and spec.replicas.
// Tested by tests/proto/job/job_spec_test.cc
#ifndef STRATA_PROTO_JOB_TRAINING_SPEC_H_
#define STRATA_PROTO_JOB_TRAINING_SPEC_H_

#include "absl/status/status.h"
#include "proto/strata/job.pb.h"

namespace strata::spec {

// See ResolveJob (job_spec.h). The later ones want the earlier resolved.
absl::Status ResolveTraining(TrainingSpec& training);
absl::Status ResolveEvaluation(const DataSpec& data, const TrainingSpec& training,
                               EvaluationSpec& evaluation);
absl::Status ResolveReplicas(const TrainingSpec& training, ReplicasSpec& replicas);

}  // namespace strata::spec

#endif  // STRATA_PROTO_JOB_TRAINING_SPEC_H_

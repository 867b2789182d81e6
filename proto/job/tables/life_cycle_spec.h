// Defaults and limits of spec.lifeCycle, and its values as tables use them.
#ifndef STRATA_PROTO_JOB_TABLES_LIFE_CYCLE_SPEC_H_
#define STRATA_PROTO_JOB_TABLES_LIFE_CYCLE_SPEC_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/core/life_cycle_rules.h"
#include "proto/strata/job.pb.h"

namespace strata::spec {

// See ResolveJob (job_spec.h). Training and storage are resolved.
absl::Status ResolveLifeCycle(const TrainingSpec& training, const StorageSpec& storage,
                              LifeCycleSpec& life_cycle);

// That the clicks which a score counts are such: the first label is binary. Wants labels, life
// cycle and tables resolved.
absl::Status CheckClicks(const JobSpec& job);

// Whether rows of some table have one that the job file gives.
bool HasLifeCycle(const JobSpec& job);

// REQUIRES: resolved, or absent. INVALID_ARGUMENT: a size that is none.
absl::StatusOr<LifeCycleRules> MakeLifeCycleRules(const LifeCycleSpec& life_cycle,
                                                  uint32_t partitions);

}  // namespace strata::spec

#endif  // STRATA_PROTO_JOB_TABLES_LIFE_CYCLE_SPEC_H_

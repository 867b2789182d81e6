// What a worker must know of a job to train it: derived once per generation from the scheduler's
// directive, immutable afterwards.
// Tested by tests/e2e/elastic_exchange_test.cc
#ifndef STRATA_WORKER_TRAIN_PLAN_H_
#define STRATA_WORKER_TRAIN_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/core/ids.h"
#include "proto/core/shard_map.h"
#include "proto/core/uid.h"
#include "proto/job/tables/model_tables.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "proto/wire/message.h"

namespace strata {

struct TrainingPlan {
  JobId job;
  JobIdentity identity;  // which job that is
  Generation generation;
  JobSpec spec;  // defaults resolved
  ModelTables tables;
  ShardMap shards;
  uint32_t lanes = 1;
  uint32_t batch_size = 1;
  uint64_t steps_per_epoch = 0;  // bsp
  Step last_step;                // bsp: epochs * steps_per_epoch, behind those of earlier runs
  Step start_step;               // the generation starts after it
  wire::PullCodecs pull_codecs;  // of training's pulls
  // Servers keep rows below DRAM too: keys are announced a step ahead (bsp).
  bool prefetch = false;

  bool bsp() const { return spec.training().mode() == "bsp"; }
};

// INVALID_ARGUMENT when the directive contradicts itself (shards with gaps, no input...).
absl::StatusOr<TrainingPlan> MakeTrainingPlan(const WorkerJobDirective& directive);

}  // namespace strata

#endif  // STRATA_WORKER_TRAIN_PLAN_H_

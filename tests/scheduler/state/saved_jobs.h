// Jobs, and manifests of checkpoints that they left.
#ifndef STRATA_TESTS_SCHEDULER_STATE_SAVED_JOBS_H_
#define STRATA_TESTS_SCHEDULER_STATE_SAVED_JOBS_H_

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/job.pb.h"
#include "scheduler/state/resume.h"
#include "scheduler/state/start.h"

namespace strata::scheduler {

inline TrainingJob JobOf(const std::string& sparse, const std::string& linear,
                         const std::string& dense) {
  TrainingJob job;
  job.mutable_spec()->mutable_data()->set_format("libfm");
  job.mutable_spec()->mutable_model()->set_type("fm");
  job.mutable_spec()->mutable_model()->set_embedding_dim(4);
  job.mutable_spec()->mutable_storage()->set_partitions(64);
  OptimizersSpec& o = *job.mutable_spec()->mutable_optimizer();
  o.mutable_sparse()->set_type(sparse);
  if (!linear.empty()) o.mutable_linear()->set_type(linear);
  o.mutable_dense()->set_type(dense);
  return job;
}

// As a checkpoint of `job` has it, of data with three features a line.
inline Manifest SavedBy(const TrainingJob& job, uint32_t numeric = 0) {
  Manifest saved;
  *saved.mutable_job() = job;
  saved.set_partitions(job.spec().storage().partitions());
  saved.set_fields(3);
  saved.set_numeric(numeric);
  const auto schema = ExpectedSchema(job.spec(), saved);
  INFO(schema.status());
  REQUIRE(schema.ok());
  *saved.mutable_schema() = *schema;
  saved.set_model_hash(std::string(32, '0'));
  return saved;
}

inline TrainingJob CsvJob(const std::string& type, const std::vector<std::string>& columns) {
  TrainingJob job = JobOf("adagrad", "adagrad", "adam");
  DataSpec& data = *job.mutable_spec()->mutable_data();
  data.set_format("csv");
  data.mutable_columns()->set_label("y");
  for (const std::string& c : columns) data.mutable_columns()->add_categorical(c);
  job.mutable_spec()->mutable_model()->set_type(type);
  job.mutable_spec()->mutable_model()->add_hidden(8);
  return job;
}

// How a refusal begins that tells differences of the schemas alone.
inline constexpr char kOtherModel[] =
    "the checkpoint to resume from is of another model; resume with the same one, start anew with "
    "--overwrite, or start from it with spec.model.initFrom in another "
    "spec.checkpoint.directory:\n  ";

// What keeps `now` from going on from a checkpoint of `then`, or "OK".
inline std::string ResumeProblem(const TrainingJob& now, const TrainingJob& then,
                                 uint32_t numeric = 0) {
  const Manifest saved = SavedBy(then, numeric);
  const absl::Status status = CheckResumable(now, saved);
  return status.ok() ? "OK" : std::string(status.message());
}

}  // namespace strata::scheduler

#endif  // STRATA_TESTS_SCHEDULER_STATE_SAVED_JOBS_H_

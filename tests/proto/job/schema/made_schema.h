// Specs as programs read them, and their schemas.
#ifndef STRATA_TESTS_PROTO_JOB_SCHEMA_MADE_SCHEMA_H_
#define STRATA_TESTS_PROTO_JOB_SCHEMA_MADE_SCHEMA_H_

#include <catch2/catch.hpp>
#include <utility>

#include "absl/status/status.h"
#include "proto/job/job_spec.h"
#include "proto/job/schema/schema.h"
#include "proto/job/tables/model_tables.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/job.pb.h"

namespace strata {

// Of a job over csv, in mode bsp; defaults resolved.
inline JobSpec Resolved(JobSpec spec) {
  TrainingJob job;
  job.set_api_version("strata/v1");
  job.set_kind("TrainingJob");
  job.mutable_metadata()->set_name("j");
  *job.mutable_spec() = std::move(spec);
  job.mutable_spec()->mutable_training()->set_mode("bsp");
  job.mutable_spec()->mutable_data()->set_format("csv");
  job.mutable_spec()->mutable_data()->add_train("a.csv");
  const absl::Status resolved = ResolveJob(job);
  INFO(resolved);
  REQUIRE(resolved.ok());
  return job.spec();
}

// Of a resolved spec whose data do not decide how many fields there are.
inline Schema SchemaOf(const JobSpec& spec) {
  const auto counts = CountFields(spec);
  REQUIRE(counts.has_value());
  const auto model = MakeModelTables(spec, counts->fields, counts->numeric);
  INFO(model.status());
  REQUIRE(model.ok());
  return MakeSchema(spec, *model);
}

}  // namespace strata

#endif  // STRATA_TESTS_PROTO_JOB_SCHEMA_MADE_SCHEMA_H_

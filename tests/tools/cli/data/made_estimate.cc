#include "tests/tools/cli/data/made_estimate.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "proto/core/memory_part.h"
#include "proto/job/job_spec.h"
#include "proto/strata/job.pb.h"
#include "tools/cli/data/estimate.h"

namespace strata {

JobSpec Spec() {
  TrainingJob job;
  job.set_api_version("strata/v1");
  job.set_kind("TrainingJob");
  job.mutable_metadata()->set_name("j");
  job.mutable_spec()->mutable_data()->set_format("criteo");
  job.mutable_spec()->mutable_data()->add_train("t");
  job.mutable_spec()->mutable_model()->set_type("fm");
  job.mutable_spec()->mutable_storage()->set_shards_per_server(4);
  REQUIRE(ResolveJob(job).ok());
  return job.spec();
}

DataMeasure Data() {
  return {.lines = 1000000,
          .line_bytes = 240,
          .fields = 26,
          .numeric = 13,
          .features_per_example = 26,
          .distinct_keys = 5000000,
          .keys_per_batch = 9000,
          .keys_per_push = 60000,
          .keys_per_step = 60000};
}

ProcessEstimate Of(const JobEstimate& estimate, const std::string& role) {
  for (const ProcessEstimate& p : estimate.processes) {
    if (p.role == role) return p;
  }
  FAIL("no process " << role);
  return estimate.processes[0];
}

JobEstimate Estimate(const JobSpec& spec, uint64_t rows) {
  auto estimate = EstimateJob(spec, Data(), rows, 8);
  REQUIRE(estimate.ok());
  return *estimate;
}

bool HasPart(const ProcessEstimate& process, const std::string& name) {
  for (const MemoryPart& part : process.parts) {
    if (part.name == name) return true;
  }
  return false;
}

uint64_t PartBytes(const std::vector<MemoryPart>& parts, const std::string& name) {
  for (const MemoryPart& part : parts) {
    if (part.name == name) return part.bytes;
  }
  FAIL("no part " << name);
  return 0;
}

}  // namespace strata

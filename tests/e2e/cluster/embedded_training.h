// Jobs that must succeed in one process.
#ifndef STRATA_TESTS_E2E_CLUSTER_EMBEDDED_TRAINING_H_
#define STRATA_TESTS_E2E_CLUSTER_EMBEDDED_TRAINING_H_

#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <string>

#include "tests/e2e/cluster/disturbed_run.h"
#include "tests/e2e/cluster/reads_below.h"
#include "tools/cluster/embedded/cluster.h"
#include "tools/cluster/embedded/embedded.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata {

inline JobStatus Train(const TrainingJob& job, bool resume = false) {
  EmbeddedOptions options;
  options.job = job;
  options.resume = resume;
  auto status = RunEmbedded(options);
  INFO(status.status());
  REQUIRE(status.ok());
  for (const JobCondition& c : status->conditions())
    UNSCOPED_INFO(c.reason() << ": " << c.message());
  REQUIRE(status->state() == SUCCEEDED);
  REQUIRE(status->model_hash().size() == 32);
  return *status;
}

// The same of a job that does not fit its DRAM limit: rows must have been read from SSD.
inline JobStatus TrainBelowDram(const TrainingJob& job) {
  const testing::ReadsBelow reads;
  const JobStatus status = Train(job);
  REQUIRE(reads.count() > 0);
  return status;
}

inline ScratchFolder Folder() {
  auto folder = ScratchFolder::Make("strata-test");
  REQUIRE(folder.ok());
  return *std::move(folder);
}

// The final status of a job that must succeed although it was disturbed.
inline JobStatus TrainDisturbed(const TrainingJob& job, const std::string& folder, uint64_t at,
                                const std::function<void(EmbeddedCluster&)>& disturb) {
  const JobStatus status = testing::RunDisturbed(
      job, folder, at, [&](EmbeddedCluster& cluster, const JobRef&) { disturb(cluster); });
  for (const JobCondition& c : status.conditions()) {
    UNSCOPED_INFO(c.reason() << ": " << c.message());
  }
  REQUIRE(status.state() == SUCCEEDED);
  return status;
}

}  // namespace strata

#endif  // STRATA_TESTS_E2E_CLUSTER_EMBEDDED_TRAINING_H_

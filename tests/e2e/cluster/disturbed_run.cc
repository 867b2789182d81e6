#include "tests/e2e/cluster/disturbed_run.h"

#include <catch2/catch.hpp>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/runtime/transport/scheduler_client.h"

namespace strata::testing {

JobStatus RunDisturbed(const TrainingJob& job, const std::string& folder, uint64_t at,
                       const std::function<void(EmbeddedCluster&, const JobRef&)>& disturb) {
  EmbeddedClusterOptions options;
  options.servers = 2;
  options.workers = 2;
  options.directory = folder;
  options.lease = absl::Milliseconds(500);
  auto cluster = EmbeddedCluster::Start(options);
  REQUIRE(cluster.ok());
  SubmitRequest submit;
  *submit.mutable_job() = job;
  submit.set_request_id("test");
  SchedulerClient& scheduler = (*cluster)->scheduler();
  auto id = scheduler.Submit(submit, absl::Seconds(10));
  REQUIRE(id.ok());
  JobRef ref;
  ref.set_job(id->job());
  bool disturbed = false;
  while (true) {
    auto status = scheduler.GetJob(ref, absl::Seconds(10));
    REQUIRE(status.ok());
    if (!disturbed && status->step() >= at) {
      disturbed = true;
      disturb(**cluster, ref);
    }
    const JobState state = status->state();
    if (state == SUCCEEDED || state == FAILED || state == CANCELLED) {
      CHECK(disturbed);
      return *status;
    }
    absl::SleepFor(absl::Milliseconds(1));
  }
}

void RestartNearlyAll(EmbeddedCluster& cluster) {
  cluster.StopServer(0);
  cluster.StopServer(1);
  cluster.StopWorker(0);
  REQUIRE(cluster.StartServer(1).ok());
  REQUIRE(cluster.StartServer(0).ok());
  REQUIRE(cluster.StartWorker(0).ok());
}

}  // namespace strata::testing

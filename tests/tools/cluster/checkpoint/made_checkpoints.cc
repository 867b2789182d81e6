#include "tests/tools/cluster/checkpoint/made_checkpoints.h"

#include <catch2/catch.hpp>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/job/job_spec.h"
#include "proto/runtime/transport/scheduler_client.h"
#include "proto/strata/control.pb.h"
#include "tests/e2e/cluster/small_job.h"
#include "tools/cluster/embedded/cluster.h"

namespace strata::testing {

std::vector<std::string> MakeCheckpoints(const std::string& folder, uint32_t full_every,
                                         int checkpoints, const std::string& mode,
                                         const std::function<void(JobSpec&)>& change) {
  EmbeddedClusterOptions options;
  options.servers = 2;
  options.directory = folder + "/servers";
  auto cluster = EmbeddedCluster::Start(options);
  REQUIRE(cluster.ok());
  SubmitRequest submit;
  *submit.mutable_job() = SmallJob(folder);
  JobSpec& spec = *submit.mutable_job()->mutable_spec();
  spec.mutable_data()->clear_eval();
  spec.mutable_replicas()->set_servers(2);
  spec.mutable_training()->set_mode(mode);
  spec.mutable_training()->set_epochs(100000);  // cancelled below
  spec.mutable_checkpoint()->set_directory(folder + "/checkpoints");
  spec.mutable_checkpoint()->set_keep(100);
  spec.mutable_checkpoint()->set_full_every(full_every);
  if (change) change(spec);
  REQUIRE(ResolveJob(*submit.mutable_job()).ok());
  submit.set_request_id("test");
  SchedulerClient& scheduler = (*cluster)->scheduler();
  const auto job = scheduler.Submit(submit, absl::Seconds(60));
  INFO(job.status());
  REQUIRE(job.ok());
  CreateCheckpointRequest request;
  request.mutable_job()->set_job(job->job());
  request.set_wait_ms(120000);
  std::vector<std::string> folders;
  for (const absl::Time end = absl::Now() + absl::Minutes(3);
       static_cast<int>(folders.size()) < checkpoints && absl::Now() < end;) {
    const auto made = scheduler.CreateCheckpoint(request, absl::Seconds(150));
    if (absl::IsFailedPrecondition(made.status())) continue;  // it does not train yet
    INFO(made.status());
    REQUIRE(made.ok());
    folders.push_back(made->directory());
  }
  REQUIRE(static_cast<int>(folders.size()) == checkpoints);
  REQUIRE(scheduler.CancelJob(request.job(), absl::Seconds(60)).ok());
  return folders;
}

}  // namespace strata::testing

// A Scheduler, a job, and the nodes that do it: one server and one worker, simulated.
#ifndef STRATA_TESTS_SCHEDULER_ONE_JOB_H_
#define STRATA_TESTS_SCHEDULER_ONE_JOB_H_

#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "proto/runtime/base/timer.h"
#include "proto/runtime/transport/scheduler_client.h"
#include "proto/strata/control.pb.h"
#include "scheduler/scheduler.h"
#include "scheduler/store/metadata_store.h"
#include "tests/scheduler/sim_nodes.h"

namespace strata::scheduler {

inline constexpr absl::Duration kTimeout = absl::Seconds(20);

inline std::unique_ptr<Scheduler> Start(std::unique_ptr<MetadataStore> store, Timer* timer,
                                        bool await_files = true) {
  auto scheduler = Scheduler::Start({.store = std::move(store),
                                     .timer = timer,
                                     .tick_interval = absl::ZeroDuration(),
                                     .version = "test",
                                     .await_files = await_files});
  INFO(scheduler.status());
  REQUIRE(scheduler.ok());
  return *std::move(scheduler);
}

inline SubmitRequest Job(const std::string& name, const std::string& directory) {
  SubmitRequest request;
  request.set_request_id(name + "-1");
  TrainingJob& job = *request.mutable_job();
  job.set_api_version("strata/v1");
  job.set_kind("TrainingJob");
  job.mutable_metadata()->set_name(name);
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_data()->set_format("libfm");
  spec.mutable_data()->add_train("/data/train.libfm");
  spec.mutable_model()->set_type("lr");
  spec.mutable_training()->set_lanes(2);
  spec.mutable_training()->set_batch_size(1);
  spec.mutable_storage()->set_partitions(16);
  spec.mutable_checkpoint()->set_directory(directory);
  return request;
}

inline JobStatus Get(SchedulerClient& client, const std::string& name) {
  JobRef ref;
  ref.set_name(name);
  auto status = client.GetJob(ref, kTimeout);
  INFO(status.status());
  REQUIRE(status.ok());
  return *status;
}

// One server and one worker that talk to `client` until `done`. 32 lines, 2 lanes: 16 steps.
struct Nodes {
  SimDisk disk;
  SimJob job{.lanes = 2, .steps = 16, .real_files = true};
  std::map<std::string, SimServer> servers;
  SimWorker worker{"w0", job, &servers};
  bool works = true;

  Nodes() {
    servers.emplace("s0", SimServer("s0", job, &disk));
    servers.at("s0").Start(1);
    worker.Start(2);
  }
  void Round(SchedulerClient& client) {
    auto to_server = client.Sync(servers.at("s0").Report(), kTimeout);
    INFO(to_server.status());
    REQUIRE(to_server.ok());
    servers.at("s0").Act(*to_server);
    auto to_worker = client.Sync(worker.Report(), kTimeout);
    REQUIRE(to_worker.ok());
    worker.Act(*to_worker);
    if (works) worker.Work();
  }
  void Until(SchedulerClient& client, const std::function<bool()>& done) {
    for (int i = 0; i < 500 && !done(); ++i) Round(client);
    REQUIRE(done());
  }
  // A job that is over: until both have closed it, and its lock is given back.
  void Close(SchedulerClient& client, const std::string& job) {
    Until(client, [&] { return Get(client, job).closing().empty(); });
  }
};

}  // namespace strata::scheduler

#endif  // STRATA_TESTS_SCHEDULER_ONE_JOB_H_

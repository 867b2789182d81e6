// A server or worker whose GPU is lost ends before anybody is told of it; another process of that
// name goes on as after kill -9 (promise P3). The device is played by threads (`--device host`).
#include <catch2/catch.hpp>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/core/ids.h"
#include "proto/strata/control.pb.h"
#include "tests/e2e/process_cluster.h"
#include "tests/e2e/row_updates.h"
#include "tests/faults/tiered_job.h"
#include "tools/cluster/scratch_folder.h"

namespace strata::testing {
namespace {

std::string DeviceOf(ProcessCluster& cluster, const std::string& name) {
  const CommandResult said = cluster.Strata({"nodes", "--scheduler", cluster.address(), "--json"});
  INFO(said.err);
  REQUIRE(said.exit_code == 0);
  const auto nodes = nlohmann::json::parse(said.out);
  for (const auto& node : nodes["nodes"]) {
    if (node["name"] == name && node["device"].is_string()) return node["device"];
  }
  return "none";
}

// The device's call of that number fails, and the process ends by that.
uint64_t SubmitAndLoseDevice(ProcessCluster& cluster, const TrainingJob& job,
                             const std::string& node, uint64_t call) {
  return cluster.SubmitAndLose(job, node, absl::StrCat("device.lost=error(INTERNAL)@", call), 1);
}

TEST_CASE("a server whose GPU is lost ends at once, and its successor goes on",
          "[faults][p3][gpu]") {
  auto folder = ScratchFolder::Make("strata-fault");
  REQUIRE(folder.ok());
  TrainingJob job = TieredJob(folder->path(), 2);
  const JobStatus reference = Undisturbed(job);
  job = WithHbm(BelowDram(job, "rowfile"));
  job.mutable_spec()->mutable_storage()->set_gpu_backend("cuda");
  ProcessCluster cluster({.folder = folder->path() + "/cluster",
                          .server_flags = {"--tier-memtable-bytes=131072", "--device=host"}});
  CHECK(DeviceOf(cluster, "server-0") == "host");
  CHECK(DeviceOf(cluster, "worker-0") == "none");
  // When tables are made, in pulls, commits and write-backs.
  for (const uint64_t call : {10u, 60u, 101u, 500u, 1003u, 2006u}) {
    INFO("call " << call);
    const uint64_t id = SubmitAndLoseDevice(cluster, job, "server-1", call);
    cluster.Start("server-1");
    const JobStatus end = cluster.AwaitEnd(id);
    CheckSameModel(end, reference);
    CHECK(end.rollbacks() == 0);
  }
  CHECK(absl::StrContains(ReadFile(cluster.folder() + "/server-1.log.err"), "device.lost"));
}

TEST_CASE("a worker whose GPU is lost ends, and its lanes go on", "[faults][p3][gpu]") {
  auto folder = ScratchFolder::Make("strata-fault");
  REQUIRE(folder.ok());
  TrainingJob job = TieredJob(folder->path(), 2);
  job.mutable_spec()->mutable_worker()->set_device("host");
  const JobStatus reference = Undisturbed(job);
  job.mutable_spec()->mutable_worker()->set_device("auto");
  ProcessCluster cluster(
      {.folder = folder->path() + "/cluster", .worker_flags = {"--device=host"}});
  CHECK(DeviceOf(cluster, "worker-1") == "host");
  CHECK(DeviceOf(cluster, "server-0") == "none");
  // When the step's memory is made, in copies, kernels and waits, and in graphs.
  for (const uint64_t call : {3u, 40u, 101u, 200u, 351u, 502u}) {
    INFO("call " << call);
    const uint64_t id = SubmitAndLoseDevice(cluster, job, "worker-1", call);
    // Its successor takes the lanes; or another call finds the job at its end.
    cluster.Start("worker-1");
    const JobStatus end = cluster.AwaitEnd(id);
    CheckSameModel(end, reference);
  }
  CHECK(absl::StrContains(ReadFile(cluster.folder() + "/worker-1.log.err"), "device.lost"));
}

// What a row weighs depends on the order of windows, and not how often it was updated.
TEST_CASE("windows of a worker whose GPU is lost are applied once", "[faults][gpu]") {
  auto folder = ScratchFolder::Make("strata-fault");
  REQUIRE(folder.ok());
  TrainingJob job = TieredJob(folder->path(), 4);
  job.mutable_spec()->mutable_training()->set_mode("async");
  ProcessCluster cluster(
      {.folder = folder->path() + "/cluster", .worker_flags = {"--device=host"}});
  const auto updates = [&](uint64_t call) {
    INFO("call " << call);
    job.mutable_spec()->mutable_checkpoint()->set_directory(
        absl::StrCat(folder->path(), "/checkpoints-", call));
    const uint64_t id =
        call == 0 ? cluster.Submit(job) : SubmitAndLoseDevice(cluster, job, "worker-1", call);
    if (call > 0) cluster.Start("worker-1");
    const JobStatus end = cluster.AwaitEnd(id);
    REQUIRE(end.state() == SUCCEEDED);
    return RowUpdates(end.checkpoint(), TableId(0));
  };
  const auto once = updates(0);
  CHECK(once.size() > 1000);
  for (const uint64_t call : {40u, 200u, 502u}) CHECK(updates(call) == once);
}

}  // namespace
}  // namespace strata::testing

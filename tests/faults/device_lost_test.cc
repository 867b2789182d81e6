// A server or worker whose GPU is lost ends before anybody is told of it; another process of that
// name goes on as after kill -9 (promise P3). The device is played by threads (`--device host`).
#include <catch2/catch.hpp>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/core/ids.h"
#include "proto/strata/control.pb.h"
#include "tests/e2e/cluster/embedded_training.h"
#include "tests/e2e/cluster/process_cluster.h"
#include "tests/e2e/cluster/row_updates.h"
#include "tests/faults/tiered_job.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata::testing {
namespace {

// So long that a busy machine misses nobody: who was lost comes back to what was its own.
constexpr int kLeaseMs = 60'000;

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

// The device's calls of these numbers fail, each of another process, which ends by that; then one
// goes on whose device works.
using Calls = std::vector<uint64_t>;

uint64_t SubmitAndLoseDevices(ProcessCluster& cluster, const TrainingJob& job,
                              const std::string& node, const Calls& calls) {
  std::vector<std::string> failpoints;
  for (const uint64_t call : calls) {
    failpoints.push_back(absl::StrCat("device.lost=error(INTERNAL)@", call));
  }
  const uint64_t id = cluster.SubmitAndLose(job, node, failpoints.front(), 1);
  cluster.LoseAgain(node, {failpoints.begin() + 1, failpoints.end()}, 1);
  cluster.Start(node);
  return id;
}

TEST_CASE("a server whose GPU is lost ends at once, and its successor goes on",
          "[faults][p3][gpu]") {
  auto folder = ScratchFolder::Make("strata-fault");
  REQUIRE(folder.ok());
  TrainingJob job = TieredJob(folder->path(), 2);
  const JobStatus reference = Train(job);
  job = WithHbm(BelowDram(job, "rowfile"));
  job.mutable_spec()->mutable_storage()->set_gpu_backend("cuda");
  ProcessCluster cluster({.folder = folder->path() + "/cluster",
                          .lease_ms = kLeaseMs,
                          .server_flags = {"--tier-memtable-bytes=131072", "--device=host"}});
  CHECK(DeviceOf(cluster, "server-0") == "host");
  CHECK(DeviceOf(cluster, "worker-0") == "none");
  // When tables are made, in pulls, commits and write-backs.
  for (const Calls& calls : {Calls{10, 60, 101, 2006}, Calls{500, 1003}}) {
    INFO("calls " << Catch::Detail::stringify(calls));
    const uint64_t id = SubmitAndLoseDevices(cluster, job, "server-1", calls);
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
  const JobStatus reference = Train(job);
  job.mutable_spec()->mutable_worker()->set_device("auto");
  ProcessCluster cluster({.folder = folder->path() + "/cluster",
                          .lease_ms = kLeaseMs,
                          .worker_flags = {"--device=host"}});
  CHECK(DeviceOf(cluster, "worker-1") == "host");
  CHECK(DeviceOf(cluster, "server-0") == "none");
  // When the step's memory is made, in copies, kernels and waits, and in graphs.
  for (const Calls& calls : {Calls{3, 40, 101, 502}, Calls{200, 351}}) {
    INFO("calls " << Catch::Detail::stringify(calls));
    const uint64_t id = SubmitAndLoseDevices(cluster, job, "worker-1", calls);
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
  ProcessCluster cluster({.folder = folder->path() + "/cluster",
                          .lease_ms = kLeaseMs,
                          .worker_flags = {"--device=host"}});
  const auto updates = [&](const Calls& calls) {
    INFO("calls " << Catch::Detail::stringify(calls));
    job.mutable_spec()->mutable_checkpoint()->set_directory(
        absl::StrCat(folder->path(), "/checkpoints-", calls.empty() ? 0 : calls[0]));
    const uint64_t id =
        calls.empty() ? cluster.Submit(job) : SubmitAndLoseDevices(cluster, job, "worker-1", calls);
    const JobStatus end = cluster.AwaitEnd(id);
    REQUIRE(end.state() == SUCCEEDED);
    return RowUpdates(end.checkpoint(), TableId(0));
  };
  const auto once = updates({});
  CHECK(once.size() > 1000);
  for (const uint64_t call : {40u, 502u}) CHECK(updates({call}) == once);
}

}  // namespace
}  // namespace strata::testing

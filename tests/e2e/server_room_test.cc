// What real servers report of their disk and GPU, as flags give it and as they find it.
#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "proto/runtime/files/machine_id.h"
#include "proto/strata/control.pb.h"
#include "tests/e2e/cluster/process_cluster.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata::testing {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

TEST_CASE(
    "two servers share their disk, whatever their machines are called; what is given is theirs",
    "[e2e][room]") {
  const auto scratch = ScratchFolder::Make("strata-test");
  REQUIRE(scratch.ok());
  ProcessClusterOptions options;
  options.folder = scratch->path();
  options.servers = 2;
  options.workers = 0;
  options.server_flags = {"--device", "host", "--gpu-bytes", "2GiB"};
  ProcessCluster cluster(options);
  // By name, all of one moment.
  const auto nodes = [&cluster] {
    const auto status = cluster.scheduler().GetCluster(absl::Seconds(30));
    REQUIRE(status.ok());
    std::map<std::string, NodeStatus> by_name;
    for (const NodeStatus& n : status->nodes()) by_name[n.name()] = n;
    return by_name;
  };
  cluster.Kill("server-1");
  cluster.Start("server-1", "", {"--machine-id", "a-group-of-its-own"});
  cluster.AwaitRegistered();
  auto now = nodes();
  const NodeStatus a = now["server-0"], b = now["server-1"];
  CHECK(absl::StartsWith(a.disk_id(), MachineId() + "/"));
  CHECK(a.disk_id() == b.disk_id());
  CHECK(a.machine_id() != b.machine_id());
  CHECK(a.disk_bytes() > 0);
  // Half of what either sees, which others write to meanwhile.
  CHECK(a.room().disk_bytes() == b.room().disk_bytes());
  CHECK(a.room().disk_bytes() < a.disk_bytes() / 4 * 3);
  CHECK(a.room().gpu_bytes() == 2 * kGiB);
  CHECK(b.room().gpu_bytes() == 2 * kGiB);

  cluster.Kill("server-1");
  cluster.Start("server-1", "", {"--disk-bytes", "1GiB"});
  cluster.AwaitRegistered();
  now = nodes();
  CHECK(now["server-1"].disk_bytes() == kGiB);
  CHECK(now["server-1"].room().disk_bytes() == kGiB);
  CHECK(now["server-0"].room().disk_bytes() > a.room().disk_bytes());
}

}  // namespace
}  // namespace strata::testing

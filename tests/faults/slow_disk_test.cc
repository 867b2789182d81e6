// A disk becomes much slower: the job goes on with the disk's speed, it is told which server's disk
// that is, and no more when the disk is as it was. Real processes, and a library before their
// writes.
#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/e2e/cluster/embedded_training.h"
#include "tests/e2e/cluster/process_cluster.h"
#include "tests/e2e/cluster/small_job.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata::testing {
namespace {

namespace fs = std::filesystem;

const Concern* SlowDiskOf(const JobStatus& status) {
  for (const Concern& c : status.concerns()) {
    if (c.reason() == "SlowDisk") return &c;
  }
  return nullptr;
}

TEST_CASE("a disk that becomes slow is told while it is, and the job goes on", "[faults][p9]") {
  const ScratchFolder folder = Folder();
  const std::string cluster_folder = folder.path() + "/cluster", flag = folder.path() + "/slow";
  TrainingJob job = SmallJob(folder.path());
  job.mutable_spec()->mutable_training()->set_epochs(100'000);  // until it is cancelled
  job.mutable_spec()->mutable_replicas()->set_servers(2);
  ProcessCluster cluster(
      {.folder = cluster_folder,
       .variables = {
           "LD_PRELOAD=" + Program("tests/faults/libslow_disk.so"),
           "STRATA_SLOW_PREFIX=" + fs::canonical(folder.path()).string() + "/cluster/server-1/job-",
           "STRATA_SLOW_FLAG=" + flag}});
  const uint64_t id = cluster.Submit(job);
  // How long a write usually takes is known after three spans of five seconds.
  const absl::Time begun = absl::Now();
  cluster.Await(id, [&](const JobStatus& s) {
    CHECK(SlowDiskOf(s) == nullptr);
    return absl::Now() - begun > absl::Seconds(21) && s.step() > 0;
  });
  std::ofstream(flag) << "slow";
  const JobStatus told =
      cluster.Await(id, [](const JobStatus& s) { return SlowDiskOf(s) != nullptr; });
  const Concern& slow = *SlowDiskOf(told);
  INFO(slow.ShortDebugString());
  CHECK(slow.who() == "server/server-1");
  CHECK(absl::StrContains(slow.remedy(), "nothing is lost"));
  cluster.AwaitStep(id, told.step() + 5);
  fs::remove(flag);
  const JobStatus after =
      cluster.Await(id, [](const JobStatus& s) { return SlowDiskOf(s) == nullptr; });
  INFO(Conditions(after));
  CHECK(after.rollbacks() == 0);
  CHECK_FALSE(HasCondition(after, "ServerLost"));
  JobRef ref;
  ref.set_job(id);
  CHECK(cluster.scheduler().CancelJob(ref, absl::Seconds(10)).ok());
}

}  // namespace
}  // namespace strata::testing

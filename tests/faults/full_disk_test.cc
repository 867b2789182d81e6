// Promise P9 for disks: a full one stops training with a text that says why, corrupts nothing, and
// training goes on when there is space again.
#include <sys/mount.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "tests/e2e/process_cluster.h"
#include "tests/e2e/small_job.h"
#include "tests/skip.h"
#include "tools/cluster/embedded.h"
#include "tools/cluster/scratch_folder.h"

namespace strata::testing {
namespace {

// A file system of a few MiB, unmounted with its owner.
class SmallDisk {
 public:
  SmallDisk(std::string path, const char* size) : path_(std::move(path)) {
    mkdir(path_.c_str(), 0755);
    const std::string options = std::string("size=") + size;
    mounted_ = mount("tmpfs", path_.c_str(), "tmpfs", 0, options.c_str()) == 0;
    if (!mounted_) error_ = std::strerror(errno);
  }
  ~SmallDisk() {
    if (mounted_) umount2(path_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool mounted() const { return mounted_; }
  const std::string& error() const { return error_; }
  const std::string& path() const { return path_; }
  void Fill() {
    std::ofstream out(path_ + "/filler", std::ios::binary);
    const std::vector<char> block(4096, 'x');
    while (out.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
    }
  }
  void Free() { std::remove((path_ + "/filler").c_str()); }

 private:
  const std::string path_;
  bool mounted_ = false;
  std::string error_;
};

TEST_CASE("a full disk under the update log", "[faults][p9]") {
  auto folder = ScratchFolder::Make("strata-fault");
  REQUIRE(folder.ok());
  SmallDisk disk(folder->path() + "/disk", "64m");
  if (!disk.mounted()) STRATA_SKIP("cannot mount a tmpfs: " + disk.error());
  TrainingJob job = SmallJob(folder->path());
  job.mutable_spec()->mutable_training()->set_epochs(200);
  job.mutable_spec()->mutable_replicas()->set_servers(2);
  EmbeddedOptions embedded;
  embedded.job = job;
  auto reference = RunEmbedded(embedded);
  REQUIRE(reference.ok());
  job.mutable_spec()->mutable_storage()->set_directory(disk.path());
  job.mutable_spec()->mutable_storage()->set_log_bytes_per_server("512KiB");
  {
    ProcessCluster cluster({.servers = 2, .workers = 1, .folder = folder->path() + "/cluster"});
    const uint64_t id = cluster.Submit(job);
    cluster.AwaitStep(id, 100);
    disk.Fill();
    const auto log = [&] {
      return ReadFile(cluster.folder() + "/server-0.log.err") +
             ReadFile(cluster.folder() + "/server-1.log.err") +
             ReadFile(cluster.folder() + "/server-0/log/strata-server.WARNING") +
             ReadFile(cluster.folder() + "/server-1/log/strata-server.WARNING");
    };
    AwaitThat("a server says that the disk is full",
              [&] { return log().find("No space left on device") != std::string::npos; });
    // Killed there and then: what is on disk is still enough.
    cluster.Kill("server-1");
    disk.Free();
    cluster.Start("server-1");
    const JobStatus end = cluster.AwaitEnd(id);
    INFO(Conditions(end));
    CHECK(end.state() == SUCCEEDED);
    CHECK(end.model_hash() == reference->model_hash());
    CHECK(end.rollbacks() == 0);
    CHECK(cluster.Running("server-0"));
  }
}

TEST_CASE("a full disk under the checkpoints", "[faults][p9]") {
  auto folder = ScratchFolder::Make("strata-fault");
  REQUIRE(folder.ok());
  SmallDisk disk(folder->path() + "/disk", "1m");
  if (!disk.mounted()) STRATA_SKIP("cannot mount a tmpfs: " + disk.error());
  TrainingJob job = SmallJob(folder->path());
  job.mutable_spec()->mutable_training()->set_epochs(100);
  EmbeddedOptions embedded;
  embedded.job = job;
  auto reference = RunEmbedded(embedded);
  REQUIRE(reference.ok());
  job.mutable_spec()->mutable_checkpoint()->set_directory(disk.path() + "/checkpoints");
  job.mutable_spec()->mutable_checkpoint()->set_every_steps(50);
  ProcessCluster cluster({.servers = 1, .workers = 1, .folder = folder->path() + "/cluster"});
  disk.Fill();
  const uint64_t id = cluster.Submit(job);
  const JobStatus failed =
      cluster.Await(id, [](const JobStatus& s) { return HasCondition(s, "CheckpointFailed"); });
  CHECK(Conditions(failed).find("No space left on device") != std::string::npos);
  CHECK(Conditions(failed).find(disk.path()) != std::string::npos);
  disk.Free();
  const JobStatus end = cluster.AwaitEnd(id);
  INFO(Conditions(end));
  CHECK(end.state() == SUCCEEDED);
  CHECK(end.model_hash() == reference->model_hash());
  const CommandResult verify =
      cluster.Strata({"checkpoint", "verify", job.spec().checkpoint().directory()});
  INFO(verify.err);
  CHECK(verify.exit_code == 0);
}

}  // namespace
}  // namespace strata::testing

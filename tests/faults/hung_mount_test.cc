// A mount that hangs holds up the job that uses it and nobody else: real processes, and a library
// before their system calls that blocks those below one folder. Each process in turn, with a job
// beside that goes on, leases that hold, and a process that is killed and missed meanwhile.
#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/strata/control.pb.h"
#include "tests/e2e/cluster/process_cluster.h"
#include "tests/e2e/cluster/small_job.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata::testing {
namespace {

namespace fs = std::filesystem;

// So long that a busy machine misses nobody who is there.
constexpr absl::Duration kLease = absl::Seconds(3);
// Of jobs that go on until they are cancelled.
constexpr uint32_t kNoEnd = 1'000'000;

// A lock is renewed there in time also while the machine's disk is busy for seconds.
ScratchFolder InMemory() {
  setenv("TMPDIR", "/dev/shm", 1);
  return *ScratchFolder::Make("strata-fault");
}

// Two servers and three workers; below `hung()` calls of one program hang while Hang says so. A job
// that uses none of it trains beside.
class HungCluster {
 public:
  explicit HungCluster(const std::string& program)
      : folder_(InMemory()),
        small_(SmallJob(folder_.path())),
        flag_(folder_.path() + "/flag"),
        cluster_({.servers = 2,
                  .workers = 3,
                  .folder = folder_.path() + "/cluster",
                  .lease_ms = static_cast<int>(absl::ToInt64Milliseconds(kLease)),
                  .variables = {"LD_PRELOAD=" + Program("tests/faults/libhung_mount.so"),
                                "STRATA_HUNG_PROGRAM=" + program, "STRATA_HUNG_FLAG=" + flag_,
                                "STRATA_HUNG_PREFIX=" + hung()}}) {
    fs::create_directory(hung());
    TrainingJob job = NewJob("beside");
    job.mutable_spec()->mutable_training()->set_epochs(kNoEnd);
    job.mutable_spec()->mutable_checkpoint()->set_directory(folder_.path() + "/beside");
    beside_ = cluster_.Submit(job);
    cluster_.AwaitStep(beside_, 10);
  }

  std::string hung() const { return folder_.path() + "/hung"; }
  TrainingJob NewJob(const std::string& name) const {
    TrainingJob job = small_;
    job.mutable_metadata()->set_name(name);
    job.mutable_spec()->mutable_replicas()->set_servers(1);
    job.mutable_spec()->mutable_replicas()->set_workers(1);
    return job;
  }
  void Hang() { std::ofstream(flag_) << "hung"; }
  void Release() { fs::remove(flag_); }
  void AwaitHung() {
    AwaitThat("a call hangs", [&] { return fs::exists(flag_ + ".met"); });
  }
  void Cancel(uint64_t job) {
    JobRef ref;
    ref.set_job(job);
    REQUIRE(cluster_.scheduler().CancelJob(ref, absl::Seconds(5)).ok());
  }
  // What was said of nodes that are away.
  std::string Evictions() {
    const auto events = cluster_.scheduler().GetEvents({}, absl::Seconds(5));
    REQUIRE(events.ok());
    std::string text;
    for (const Event& e : events->events()) {
      for (const char* reason : {"NodeLapsed", "NodeFenced", "ServerLost", "WorkerLost",
                                 "RolledBack", "WorkerRestarted"}) {
        if (e.reason() == reason) absl::StrAppend(&text, e.reason(), ": ", e.message(), "\n");
      }
    }
    return text;
  }
  // For three leases the other job goes on and nobody is missed; then somebody dies, and is.
  void CheckOthersGoOn() {
    const absl::Time until = absl::Now() + 3 * kLease;
    const uint64_t step = cluster_.Status(beside_).step();
    const std::string lock = ReadFile(folder_.path() + "/beside/LOCK.1");
    AwaitThat("three leases and some steps",
              [&] { return absl::Now() > until && cluster_.Status(beside_).step() > step + 20; });
    CHECK(Evictions() == before_);
    CHECK(ReadFile(folder_.path() + "/beside/LOCK.1") != lock);  // it is renewed
    CHECK_FALSE(HasCondition(cluster_.Status(beside_), "CheckpointLockStalls"));
    const auto nodes = cluster_.scheduler().GetCluster(absl::Seconds(5));
    REQUIRE(nodes.ok());
    std::string idle;  // of the workers
    for (const NodeStatus& node : nodes->nodes()) {
      CHECK(node.alive());
      if (node.role() == WORKER && node.jobs_size() == 0) idle = node.name();
    }
    REQUIRE_FALSE(idle.empty());
    cluster_.Kill(idle);
    AwaitThat("a killed worker is missed", [&] { return absl::StrContains(Evictions(), idle); });
    CHECK(cluster_.Status(beside_).state() == RUNNING);
  }
  // It trains on.
  void CheckGoesOn(uint64_t job) {
    cluster_.AwaitStep(job, cluster_.Status(job).step() + 20);
    CHECK(cluster_.Status(job).rollbacks() == 0);
  }
  void CheckEndsWell(uint64_t job) {
    const JobStatus end = cluster_.AwaitEnd(job);
    INFO(Conditions(end));
    CHECK(end.state() == SUCCEEDED);
    CHECK(cluster_.Status(beside_).state() == RUNNING);
    CHECK(cluster_.Status(beside_).rollbacks() == 0);
  }
  // The server that has the job.
  std::string ServerOf(uint64_t job) {
    const auto nodes = cluster_.scheduler().GetCluster(absl::Seconds(5));
    REQUIRE(nodes.ok());
    for (const NodeStatus& node : nodes->nodes()) {
      const auto& jobs = node.jobs();
      if (node.role() == SERVER && std::find(jobs.begin(), jobs.end(), job) != jobs.end()) {
        return node.name();
      }
    }
    return "";
  }
  // What was said until now is known.
  void ForgetEvictions() { before_ = Evictions(); }
  ProcessCluster& cluster() { return cluster_; }

 private:
  ScratchFolder folder_;
  const TrainingJob small_;  // its input is written once
  const std::string flag_;
  ProcessCluster cluster_;
  uint64_t beside_ = 0;
  std::string before_;
};

TEST_CASE("a server goes on beside a job whose storage hangs", "[faults][hang]") {
  HungCluster c("strata-server");
  TrainingJob job = c.NewJob("a");
  job.mutable_spec()->mutable_storage()->set_directory(c.hung() + "/rows");
  c.Hang();
  const uint64_t id = c.cluster().Submit(job);
  c.AwaitHung();
  c.Cancel(id);  // what opens is to be closed, and removed
  c.CheckOthersGoOn();
  c.Release();
  c.CheckEndsWell(c.cluster().Submit(job));
  AwaitThat("nothing is left of either job", [&] {
    return !fs::exists(c.hung() + "/rows/server-0") && !fs::exists(c.hung() + "/rows/server-1");
  });
}

TEST_CASE("a worker goes on beside a job whose input hangs", "[faults][hang]") {
  HungCluster c("strata-worker");
  TrainingJob job = c.NewJob("a");
  for (std::string& file : *job.mutable_spec()->mutable_data()->mutable_train()) {
    const std::string copy = c.hung() + "/train";
    fs::copy_file(file, copy);
    file = copy;
  }
  c.Hang();
  const uint64_t id = c.cluster().Submit(job);
  c.AwaitHung();
  c.Cancel(id);
  c.CheckOthersGoOn();
  c.Release();
  c.CheckEndsWell(c.cluster().Submit(job));
}

TEST_CASE("the scheduler goes on beside jobs whose checkpoint folders hang", "[faults][hang]") {
  HungCluster c("strata-scheduler");
  TrainingJob job = c.NewJob("a");
  job.mutable_spec()->mutable_checkpoint()->set_directory(c.hung() + "/a");
  job.mutable_spec()->mutable_training()->set_epochs(kNoEnd);
  const uint64_t id = c.cluster().Submit(job);
  c.cluster().AwaitStep(id, 5);
  c.Hang();
  SubmitRequest request;
  *request.mutable_job() = c.NewJob("b");
  request.mutable_job()->mutable_spec()->mutable_checkpoint()->set_directory(c.hung() + "/b");
  request.set_request_id("b");
  const absl::Status told = c.cluster().scheduler().Submit(request, absl::Seconds(20)).status();
  INFO(told);
  CHECK(absl::IsDeadlineExceeded(told));
  CHECK(absl::StrContains(told.message(), absl::StrCat("spec.checkpoint.directory ", c.hung(),
                                                       "/b did not answer for ")));
  c.AwaitHung();
  c.CheckOthersGoOn();
  CHECK(HasCondition(c.cluster().Status(id), "CheckpointLockStalls"));
  c.Release();
  c.CheckGoesOn(id);
  CreateCheckpointRequest take;
  take.mutable_job()->set_job(id);
  take.set_wait_ms(30'000);
  const auto taken = c.cluster().scheduler().CreateCheckpoint(take, absl::Seconds(40));
  INFO(taken.status());
  REQUIRE(taken.ok());
  CHECK(fs::exists(c.cluster().Status(id).checkpoint() + "/MANIFEST.json"));
  c.Cancel(id);
  CHECK(c.cluster().AwaitEnd(id).state() == CANCELLED);
}

TEST_CASE("a server begins while the storage of a job that it holds hangs", "[faults][hang]") {
  HungCluster c("strata-server");
  TrainingJob job = c.NewJob("a");
  job.mutable_spec()->mutable_storage()->set_directory(c.hung() + "/rows");
  job.mutable_spec()->mutable_storage()->set_durability("logged");
  job.mutable_spec()->mutable_training()->set_epochs(kNoEnd);
  const uint64_t id = c.cluster().Submit(job);
  c.cluster().AwaitStep(id, 5);
  const std::string server = c.ServerOf(id);
  REQUIRE_FALSE(server.empty());
  c.cluster().Kill(server);
  c.Hang();
  c.cluster().Start(server);
  c.AwaitHung();
  c.cluster().AwaitRegistered();
  c.ForgetEvictions();
  c.CheckOthersGoOn();
  CHECK(c.cluster().Status(id).state() == RUNNING);
  c.Release();
  c.CheckGoesOn(id);
}

TEST_CASE("a process that is to end does not wait for a mount that hangs", "[faults][hang]") {
  HungCluster c("strata-server");
  TrainingJob job = c.NewJob("a");
  job.mutable_spec()->mutable_storage()->set_directory(c.hung() + "/rows");
  c.Hang();
  const uint64_t id = c.cluster().Submit(job);
  c.AwaitHung();
  const JobStatus waits = c.cluster().Status(id);
  CHECK(waits.state() == PENDING);
  for (const char* server : {"server-0", "server-1"}) c.cluster().process(server).Signal(SIGTERM);
  int killed = 0;
  for (const char* server : {"server-0", "server-1"}) {
    killed += c.cluster().process(server).Wait(absl::Seconds(30)) != 0;
  }
  CHECK(killed == 1);  // the other one has nothing that hangs
}

}  // namespace
}  // namespace strata::testing

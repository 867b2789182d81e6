// Networks break between machines, one way or both, while the scheduler hears everybody: real
// routes of the kernel's between processes with networks of their own. It is told who does not
// reach whom, nothing is lost, and when the network is whole again a synchronous job has the model
// that it has undisturbed.
#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/runtime/transport/scheduler_client.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/e2e/cluster/embedded_training.h"
#include "tests/e2e/cluster/process_cluster.h"
#include "tests/e2e/cluster/small_job.h"
#include "tests/faults/network/separate_networks.h"
#include "tests/skip.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata::testing {
namespace {

// Of this process, which is out of the machine's network from the first call on.
const absl::StatusOr<std::unique_ptr<SeparateNetworks>>& Networks() {
  static const auto networks =
      SeparateNetworks::Make({"server-0", "server-1", "server-2", "worker-0", "worker-1"});
  return networks;
}

ProcessClusterOptions Apart(const SeparateNetworks& networks, const std::string& folder) {
  ProcessClusterOptions options{.servers = 3, .folder = folder};
  options.scheduler_host = networks.router_address();
  options.scheduler_flags = {"--insecure"};
  for (const char* name : {"server-0", "server-1", "server-2", "worker-0", "worker-1"}) {
    ProcessPlace& place = options.places[name];
    place.launcher = networks.Launcher(name);
    place.flags = {"--insecure"};
    if (absl::StartsWith(name, "server")) {
      place.flags.push_back("--listen=" + networks.AddressOf(name) + ":0");
    }
  }
  return options;
}

TrainingJob LongJob(const std::string& folder, const std::string& name) {
  TrainingJob job = SmallJob(folder);
  job.mutable_metadata()->set_name(name);
  job.mutable_spec()->mutable_training()->set_epochs(40);
  job.mutable_spec()->mutable_replicas()->set_servers(2);
  job.mutable_spec()->mutable_replicas()->set_workers(2);
  job.mutable_spec()->mutable_checkpoint()->set_directory(absl::StrCat(folder, "/ckpt-", name));
  return job;
}

TrainingJob WithCopies(TrainingJob job) {
  job.mutable_spec()->mutable_storage()->set_durability("replicated");
  job.mutable_spec()->mutable_storage()->set_replicas(2);
  return job;
}

// Nothing that the one sends reaches the other while this lives.
class Cut {
 public:
  Cut(SeparateNetworks& networks, const std::string& from, const std::string& to)
      : networks_(networks), from_(from), to_(to) {
    networks_.Cut(from_, to_);
  }
  ~Cut() { networks_.Heal(from_, to_); }
  Cut(const Cut&) = delete;
  Cut& operator=(const Cut&) = delete;

 private:
  SeparateNetworks& networks_;
  const std::string from_, to_;
};

// Servers of the job: the heads, where there are copies.
std::vector<std::string> HeadsOf(ProcessCluster& cluster, uint64_t job) {
  JobRef ref;
  ref.set_job(job);
  const auto shards = cluster.scheduler().GetShards(ref, absl::Seconds(10));
  INFO(shards.status());
  REQUIRE(shards.ok());
  std::vector<std::string> names;
  for (const ShardServer& server : shards->servers()) names.push_back(server.name());
  return names;
}

std::string CopyOf(ProcessCluster& cluster, uint64_t job, int slot) {
  JobRef ref;
  ref.set_job(job);
  const auto shards = cluster.scheduler().GetShards(ref, absl::Seconds(10));
  REQUIRE(shards.ok());
  REQUIRE(shards->servers(slot).copies_size() == 2);
  return shards->servers(slot).copies(1).server();
}

// What is told of two that do not reach each other; empty: nothing.
std::string Unreachable(const JobStatus& status, const std::string& who, const std::string& other) {
  for (const Concern& c : status.concerns()) {
    if (c.reason() == "Unreachable" && c.who() == who && c.other() == other) return c.known_by();
  }
  return "";
}

std::string AwaitUnreachable(ProcessCluster& cluster, uint64_t job, const std::string& who,
                             const std::string& other) {
  return Unreachable(
      cluster.Await(job, [&](const JobStatus& s) { return !Unreachable(s, who, other).empty(); }),
      who, other);
}

void CheckEnd(ProcessCluster& cluster, uint64_t job, const JobStatus& reference) {
  const JobStatus end = cluster.AwaitEnd(job);
  INFO(Conditions(end));
  CHECK(end.state() == SUCCEEDED);
  CHECK(end.rollbacks() == 0);
  CHECK(end.examples() == end.total_examples());
  CHECK(end.model_hash() == reference.model_hash());
}

TEST_CASE("networks break between machines that the scheduler hears", "[faults][p1][p3][p8]") {
  if (!Networks().ok()) STRATA_SKIP(std::string(Networks().status().message()));
  SeparateNetworks& networks = **Networks();
  auto folder = ScratchFolder::Make("strata-fault");
  REQUIRE(folder.ok());
  const JobStatus reference = Train(LongJob(folder->path(), "reference"));
  ProcessCluster cluster(Apart(networks, folder->path() + "/cluster"));

  SECTION("one way: a worker's requests arrive, and the answers do not") {
    const uint64_t job = cluster.Submit(LongJob(folder->path(), "one-way"));
    cluster.AwaitStep(job, 40);
    const std::string server = HeadsOf(cluster, job).at(0);
    {
      const Cut replies(networks, server, "worker-0");
      const std::string told =
          AwaitUnreachable(cluster, job, "server/" + server, "worker/worker-0");
      CHECK(absl::StrContains(told, "the scheduler hears both"));
      // The job waits for that worker's steps: nobody is evicted, and nothing is given to others.
      const JobStatus waits = cluster.Status(job);
      CHECK(waits.state() == RUNNING);
      CHECK_FALSE(HasCondition(waits, "WorkerLost"));
      CHECK_FALSE(HasCondition(waits, "ServerLost"));
    }
    CheckEnd(cluster, job, reference);
  }

  SECTION("a black hole between a server and all workers") {
    const uint64_t job = cluster.Submit(LongJob(folder->path(), "black-hole"));
    cluster.AwaitStep(job, 40);
    const std::string server = HeadsOf(cluster, job).at(1);
    {
      const Cut there_0(networks, "worker-0", server), back_0(networks, server, "worker-0");
      const Cut there_1(networks, "worker-1", server), back_1(networks, server, "worker-1");
      for (const char* worker : {"worker/worker-0", "worker/worker-1"}) {
        const std::string told = AwaitUnreachable(cluster, job, "server/" + server, worker);
        CHECK(absl::StrContains(told, "the scheduler hears both"));
      }
      CHECK(cluster.Status(job).step() < cluster.Status(job).total_steps());
    }
    CheckEnd(cluster, job, reference);
  }

  SECTION("one way between a server and the one that has its copies: another one gets them") {
    const uint64_t job = cluster.Submit(WithCopies(LongJob(folder->path(), "copies")));
    cluster.AwaitStep(job, 40);
    const std::string head = HeadsOf(cluster, job).at(0), copy = CopyOf(cluster, job, 0);
    {
      const Cut questions(networks, copy, head);
      // Whose connection breaks says so; who is still beside the scheduler has the shards.
      cluster.Await(job, [](const JobStatus& s) {
        return HasCondition(s, "Promoted") || HasCondition(s, "CopyLost");
      });
    }
    CheckEnd(cluster, job, reference);
  }

  SECTION("a machine is cut off from all, and another one goes on with its copies") {
    const uint64_t job = cluster.Submit(WithCopies(LongJob(folder->path(), "unplugged")));
    cluster.AwaitStep(job, 40);
    const std::string head = HeadsOf(cluster, job).at(0);
    networks.Unplug(head);
    cluster.Await(job, [](const JobStatus& s) { return HasCondition(s, "Promoted"); });
    networks.Plug(head);
    CheckEnd(cluster, job, reference);
  }
}

}  // namespace
}  // namespace strata::testing

// The programs of two clusters begin on each other's folders: they refuse the other cluster with
// both ids, nothing is deleted, and each job ends with the model that it has alone.
#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/runtime/transport/scheduler_client.h"
#include "proto/strata/control.pb.h"
#include "tests/e2e/cluster/embedded_training.h"
#include "tests/e2e/cluster/process_cluster.h"
#include "tests/faults/swapped.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata::testing {
namespace {

// How often the log of a node says that it met another cluster, each time with both ids.
int Refusals(ProcessCluster& cluster, const std::string& node, const std::string& one,
             const std::string& other) {
  int times = 0;
  for (const absl::string_view line :
       absl::StrSplit(ReadFile(cluster.folder() + "/" + node + ".log.err"), '\n')) {
    if (!absl::StrContains(line, "belongs to cluster")) continue;
    INFO(line);
    CHECK(absl::StrContains(line, one));
    CHECK(absl::StrContains(line, other));
    ++times;
  }
  return times;
}

int64_t LastSeen(ProcessCluster& cluster, const std::string& name) {
  const auto status = cluster.scheduler().GetCluster(absl::Seconds(10));
  if (!status.ok()) return 0;
  for (const NodeStatus& node : status->nodes()) {
    if (node.name() == name) return node.last_seen_unix_ms();
  }
  return 0;
}

// A scheduler that began again takes its nodes for alive before it has heard of them.
void AwaitHeard(ProcessCluster& cluster) {
  cluster.AwaitRegistered();
  for (const std::string node : {"server-0", "worker-0"}) {
    const int64_t before = LastSeen(cluster, node);
    AwaitThat(node + " speaks again", [&] { return LastSeen(cluster, node) > before; });
  }
}

TEST_CASE("processes of two clusters begin on each other's folders", "[faults][identity]") {
  const ScratchFolder folder = Folder();
  std::unique_ptr<ProcessCluster> clusters[2];
  std::string ids[2], hashes[2];
  uint64_t jobs[2];
  for (int i = 0; i < 2; ++i) {
    const std::string own = absl::StrCat(folder.path(), "/", i);
    const TrainingJob job = JobOf(own + "/job", i == 0 ? .05 : .2, 300);
    hashes[i] = Train(job).model_hash();
    clusters[i] = std::make_unique<ProcessCluster>(
        ProcessClusterOptions{.servers = 1, .workers = 1, .folder = own});
    ids[i] = clusters[i]->scheduler().GetCluster(absl::Seconds(10))->cluster_id();
    jobs[i] = clusters[i]->Submit(job);
    clusters[i]->AwaitStep(jobs[i], 20);
  }
  const std::vector<std::string> parts = {"scheduler", "server-0", "worker-0"};
  std::mt19937_64 random(1);
  for (int round = 0; round < 20; ++round) {
    const std::string part = parts[random() % parts.size()];
    INFO("round " << round << ": " << part);
    // Those who find the other cluster's id: the node itself, or who meets the scheduler.
    const std::vector<std::string> who = part == "scheduler"
                                             ? std::vector<std::string>{"server-0", "worker-0"}
                                             : std::vector<std::string>{part};
    std::map<std::pair<int, std::string>, int> before;
    for (int i = 0; i < 2; ++i) {
      for (const auto& node : who) {
        before[{i, node}] = Refusals(*clusters[i], node, ids[0], ids[1]);
      }
    }
    for (const bool there : {true, false}) {
      for (const auto& c : clusters) c->Kill(part);
      SwapFolders(clusters[0]->folder() + "/" + part, clusters[1]->folder() + "/" + part);
      for (const auto& c : clusters) c->Start(part);
      if (!there) break;
      for (int i = 0; i < 2; ++i) {
        for (const auto& node : who) {
          AwaitThat(node + " refuses", [&] {
            return Refusals(*clusters[i], node, ids[0], ids[1]) > before[{i, node}];
          });
        }
      }
    }
    for (const auto& c : clusters) AwaitHeard(*c);
  }
  for (int i = 0; i < 2; ++i) {
    const JobStatus end = clusters[i]->AwaitEnd(jobs[i]);
    INFO(Conditions(end));
    CHECK(end.state() == SUCCEEDED);
    CHECK(end.rollbacks() == 0);
    CHECK(end.model_hash() == hashes[i]);
  }
}

}  // namespace
}  // namespace strata::testing

// StruckCluster: jobs with copies of their shards.
#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/strata/control.pb.h"
#include "tests/e2e/cluster/process_cluster.h"
#include "tests/faults/matrix/fault_matrix.h"
#include "tests/faults/matrix/scenes.h"
#include "tests/faults/matrix/struck_cluster.h"

namespace strata::testing {
namespace {

constexpr const char* kServers[] = {"server-0", "server-1", "server-2"};

// Servers of a chain that has all its copies, the head first; else none.
std::vector<std::string> WholeChain(const ShardServer& server) {
  std::vector<std::string> names;
  for (const CopyStatus& copy : server.copies()) {
    const auto wanted = names.empty() ? CopyStatus::HEAD : CopyStatus::BACKUP;
    if (copy.role() != wanted || !copy.alive()) return {};
    names.push_back(copy.server());
  }
  return names.size() == 2 ? names : std::vector<std::string>();
}

}  // namespace

void StruckCluster::BeginCopies(const CopiesScene& scene) {
  begun_at_ = absl::Now();
  for (const char* server : kServers) cluster_.Kill(server);
  for (const char* server : kServers) cluster_.Start(server, scene.failpoints);
  cluster_.AwaitRegistered();
  lost_in_.clear();
  job_ = cluster_.Submit(JobNow(), false, /*overwrite=*/true);
}

void StruckCluster::ReleaseBut(const std::string& victim) {
  for (const char* server : kServers) {
    if (server != victim) cluster_.process(server).Signal(SIGCONT);
  }
}

void StruckCluster::Lose(const CopiesScene& scene) {
  JobRef ref;
  ref.set_job(job_);
  const auto shards = cluster_.scheduler().GetShards(ref, absl::Seconds(1));
  if (!shards.ok()) return;  // it is starting, or opens the job
  // With its folder copies of other servers' shards go: they have another one each.
  const bool whole =
      std::all_of(shards->servers().begin(), shards->servers().end(),
                  [](const ShardServer& server) { return !WholeChain(server).empty(); });
  if (scene.loses_folder && !whole) return;
  for (int slot = 0; slot < shards->servers_size(); ++slot) {
    const ShardServer& server = shards->servers(slot);
    const std::vector<std::string> chain = WholeChain(server);
    const auto lost = lost_in_.find(slot);
    // Nobody has noticed yet.
    if (lost != lost_in_.end() && lost->second == server.chain_epoch()) return;
    if (chain.empty()) continue;
    const std::string& victim = chain[scene.of_head ? 0 : random_() % 2];
    lost_in_[slot] = server.chain_epoch();
    std::fprintf(stderr, "  loss of %s, %.2f s\n", victim.c_str(),
                 absl::ToDoubleSeconds(absl::Now() - begun_at_));
    cluster_.Kill(victim);
    // Who comes back with its log is waited for: no copy is made.
    if (scene.loses_folder) std::filesystem::remove_all(cluster_.folder() + "/" + victim);
    cluster_.Start(victim, scene.failpoints);
    return;
  }
}

std::string StruckCluster::AwaitStanding(const CopiesScene& scene) {
  JobRef ref;
  ref.set_job(job_);
  std::string last = "nothing was heard of the job";
  for (uint64_t looks = 1;; ++looks) {
    for (const char* server : kServers) {
      if (cluster_.process(server).Stopped()) return server;
    }
    absl::SleepFor(absl::Milliseconds(2));
    if (looks % 50 != 0) continue;
    const auto now = cluster_.scheduler().GetJob(ref, absl::Seconds(1));
    if (now.ok()) last = absl::StrCat("step ", now->step(), ": ", Conditions(*now));
    INFO("no server stands still: " << last);
    REQUIRE(looks < 30'000);
    if (now.ok() && Over(*now)) return "";
    if (now.ok() && scene.needs_loss && now->state() == RUNNING) Lose(scene);
  }
}

void StruckCluster::RunCopies(const CopiesScene& scene) {
  INFO(NameOf(o_.mode) << ", " << NameOf(scene.phase) << ", seed " << o_.seed);
  phase_ = scene.phase;
  BeginCopies(scene);
  for (int turn = 0; turn < Turns(); ++turn) {
    for (const Role role : kRoles) {
      std::string marker = AwaitStanding(scene);
      if (marker.empty()) {
        EndCopies();
        BeginCopies(scene);
        marker = AwaitStanding(scene);
        REQUIRE(!marker.empty());
      }
      // What others do for somebody who stands still comes before the blow: so many a commit is
      // on its way when its head is lost.
      const absl::Time until = absl::Now() + absl::Milliseconds(random_() % 50);
      AwaitThat("the others to go on", [&] { return absl::Now() >= until; });
      Strike(role, BlowOf(turn), marker, scene.failpoints);
      // What stands still next came there after the blow.
      Release();
    }
  }
  EndCopies();
  std::fprintf(stderr, "%s, %s: %.2f s\n", NameOf(o_.mode), NameOf(scene.phase),
               absl::ToDoubleSeconds(absl::Now() - begun_at_));
}

void StruckCluster::EndCopies() {
  JobRef ref;
  ref.set_job(job_);
  bool over = false;
  for (uint64_t looks = 1; !over; ++looks) {
    // Often, as each standstill holds up all the job.
    Release();
    absl::SleepFor(absl::Milliseconds(1));
    if (looks % 200 != 0) continue;
    const auto now = cluster_.scheduler().GetJob(ref, absl::Seconds(1));
    INFO("the job does not end: " << (now.ok() ? Conditions(*now) : ""));
    REQUIRE(looks < 120'000);
    over = now.ok() && Over(*now);
  }
  Judge(cluster_.AwaitEnd(job_));
  CountNetworkFaults();
  // Questions of neighbours may have stopped some since.
  cluster_.KillAndStart({std::begin(kServers), std::end(kServers)});
  cluster_.AwaitRegistered();
}

}  // namespace strata::testing

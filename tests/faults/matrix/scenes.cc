#include "tests/faults/matrix/scenes.h"

#include "absl/strings/str_cat.h"

namespace strata::testing {

std::vector<Scene> ScenesOf(Mode mode) {
  const bool bsp = mode == Mode::kBsp;
  // Requests at one server from one standstill to the next, and commits of its four shards.
  const uint32_t requests = 24, commits = 48;
  // Of one worker; where lanes have copies of their own, of every fourth batch.
  const uint32_t calls = mode == Mode::kDownpour || mode == Mode::kEasgd ? 8 : 24;
  const Role server = Role::kServer, worker = Role::kWorker, scheduler = Role::kScheduler;
  std::vector<Scene> scenes = {
      {Phase::kPull, server, "server.pull", requests, {scheduler, server}},
      {Phase::kPull, worker, "worker.pull", calls, {worker}},
      {Phase::kPush, server, "server.push", requests, {scheduler, server}},
      {Phase::kPush, worker, "worker.push", calls, {worker}},
      {Phase::kCommit, server, "server.commit.append", commits, {worker, scheduler, server}},
      {Phase::kCommit, server, "server.commit.appended", commits, {server}},
      {Phase::kCommit, server, "server.commit.applied", commits, {server}},
      {Phase::kCheckpoint, server, "server.checkpoint", 4, {worker, scheduler, server}},
      {Phase::kCheckpoint, scheduler, "scheduler.checkpoint.manifest", 2, {scheduler}},
      {Phase::kImage, server, "server.image", 4, {worker, scheduler, server}},
  };
  // Lanes mark a cut themselves where there are no steps.
  if (!bsp) scenes.push_back({Phase::kCheckpoint, worker, "worker.mark", 4, {worker}});
  return scenes;
}

std::vector<Scene> ClockScenesOf() {
  const std::vector<Role> all = {Role::kServer, Role::kWorker, Role::kScheduler};
  return {{Phase::kPull, Role::kServer, "server.pull", 20, all},
          {Phase::kCommit, Role::kServer, "server.commit.append", 40, all},
          {Phase::kCheckpoint, Role::kServer, "server.checkpoint", 4, all}};
}

std::vector<CopiesScene> CopiesScenesOf(Mode mode) {
  // Calls at one server from one standstill to the next, of each kind. A question of a neighbour
  // is a call as well.
  const int calls = mode == Mode::kDownpour || mode == Mode::kEasgd ? 40 : 100;
  std::string forward;
  for (const char* failpoint : {"server.forward", "server.chain.forward", "server.chain.received",
                                "server.chain.appended", "server.chain.acked"}) {
    absl::StrAppend(&forward, forward.empty() ? "" : ";", failpoint, "=stop@", calls, "/", calls);
  }
  // An image is read in several pieces, of each shard one at least.
  return {{Phase::kForward, forward},
          {Phase::kPromotion, "server.chain.promote=stop", true, true},
          {Phase::kCopyImage, "server.chain.image=stop@2/3", true, false, true}};
}

std::string ArmedFor(const Scene& scene) {
  return absl::StrCat(scene.failpoint, "=stop@", scene.every, "/", scene.every);
}

}  // namespace strata::testing

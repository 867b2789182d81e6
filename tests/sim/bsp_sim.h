// Synchronous training in one thread, without clock or sockets: the servers' shards and the
// workers' lane drivers as they run in the processes, and between them a network that drops,
// delays, duplicates and reorders, and processes that die. A run is a function of its options.
#ifndef STRATA_TESTS_SIM_BSP_SIM_H_
#define STRATA_TESTS_SIM_BSP_SIM_H_

#include <cstdint>
#include <string>
#include <vector>

namespace strata::sim {

// Something that happens where a script says so.
struct BspEvent {
  enum Kind : uint8_t {
    kPush,         // worker `other`'s push of the scripted step reaches server `who`
    kCommit,       // shard `other` of server `who` commits the step
    kDieInCommit,  // the same is durable there, and the server ends before it is applied
    kImage,        // server `who` writes a base image of shard `other`, and drops old log
    kKillServer,   // `who`
    kKillWorker,   // `who`; its lanes go to others
    kLoseWorker,   // the same, but it lives on and goes on sending
  };
  Kind kind;
  uint32_t who = 0;
  uint32_t other = 0;
};

struct BspOptions {
  uint64_t seed = 0;  // of the order of events and of random faults
  uint32_t servers = 2;
  uint32_t shards = 1;  // of each server
  uint32_t workers = 2;
  uint32_t lanes = 3;
  uint64_t steps = 3;
  bool life_cycle = false;  // features get rows late, and lose them
  bool hbm = false;         // the hottest rows of each shard lie in a GPU tier
  std::string folder;       // scratch, of base images; empty: none are written
  // Random faults: chances in 1000 per event.
  uint32_t drop = 0;
  uint32_t duplicate = 0;
  uint32_t kill_server = 0;  // at any event; half of them between append and apply
  uint32_t kill_worker = 0;  // half of them live on as zombies
  uint32_t max_kills = 0;
  uint32_t image = 0;  // no fault: a base image of some shard
  // One planned fault: before event number `kill_at`, kill `victim` (servers first, then workers).
  // 0: none.
  uint64_t kill_at = 0;
  uint32_t victim = 0;
  bool in_commit = false;  // a server's: in the next commit instead, between append and apply
  // When every lane has computed this step and none of its pushes has arrived, `script` happens;
  // then the run goes on by chance. 0: none.
  uint64_t scripted_step = 0;
  std::vector<BspEvent> script;
  // After every event of the script but deaths, all messages that can do anything arrive, but for
  // pushes of the step and later ones. Else nothing else happens meanwhile.
  bool prompt_network = false;
};

struct BspResult {
  std::string error;    // empty: every promise held
  uint64_t events = 0;  // until the job was done
  uint64_t kills = 0;
  uint64_t served_preimages = 0;
  uint64_t too_old = 0;
  uint64_t named_tickets = 0;     // that stood for keys
  uint64_t stale_tickets = 0;     // that were refused
  uint64_t recovered_images = 0;  // that shards started from
};

// Tickets are given, named, lost with servers and messages, as in the processes; so are sessions'
// numbers. Promises checked: a ticket stands for the keys that would have been sent and a number
// for one work, every lane computes from the weights after the step before, a commit that a worker
// has seen is never lost, shards' clocks differ by at most one, the job ends, and what it ends with
// is the serial account's model, bit for bit.
BspResult RunBsp(const BspOptions& options);

}  // namespace strata::sim

#endif  // STRATA_TESTS_SIM_BSP_SIM_H_

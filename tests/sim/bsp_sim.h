// Synchronous training in one thread, without disk, clock or sockets: the servers' shards and the
// workers' lane drivers as they run in the processes, and between them a network that drops,
// delays, duplicates and reorders, and processes that die. A run is a function of its options.
#ifndef STRATA_TESTS_SIM_BSP_SIM_H_
#define STRATA_TESTS_SIM_BSP_SIM_H_

#include <cstdint>
#include <string>

namespace strata::sim {

struct BspOptions {
  uint64_t seed = 0;     // of the order of events and of random faults
  uint32_t servers = 2;  // one shard each
  uint32_t workers = 2;
  uint32_t lanes = 3;
  uint64_t steps = 3;
  bool life_cycle = false;  // features get rows late, and lose them
  // Random faults: chances in 1000 per event.
  uint32_t drop = 0;
  uint32_t duplicate = 0;
  uint32_t kill_server = 0;  // at any event; half of them between append and apply
  uint32_t kill_worker = 0;  // half of them live on as zombies
  uint32_t max_kills = 0;
  // One planned fault: before event number `kill_at`, kill `victim` (servers first, then workers).
  // 0: none.
  uint64_t kill_at = 0;
  uint32_t victim = 0;
  bool in_commit = false;  // a server's: in the next commit instead, between append and apply
};

struct BspResult {
  std::string error;    // empty: every promise held
  uint64_t events = 0;  // until the job was done
  uint64_t kills = 0;
  uint64_t served_preimages = 0;
  uint64_t too_old = 0;
  uint64_t named_tickets = 0;  // that stood for keys
  uint64_t stale_tickets = 0;  // that were refused
};

// Tickets are given, named, lost with servers and messages, as in the processes. Promises checked:
// a ticket stands for the keys that would have been sent, every lane computes from the weights
// after the step before, a commit that a worker has seen is never lost, shards' clocks differ by at
// most one, the job ends, and what it ends with is the serial account's model, bit for bit.
BspResult RunBsp(const BspOptions& options);

}  // namespace strata::sim

#endif  // STRATA_TESTS_SIM_BSP_SIM_H_

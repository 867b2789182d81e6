// Asynchronous checkpoints in one thread: the shards' runners with their barriers, window ledgers
// and logs as they run in servers, against lanes that push windows and mark cuts over a network
// that drops, delays, duplicates and reorders, with shards and lanes that die. A run is a function
// of its options.
#ifndef STRATA_TESTS_SIM_ASYNC_CUT_SIM_H_
#define STRATA_TESTS_SIM_ASYNC_CUT_SIM_H_

#include <cstdint>
#include <string>

#include "tests/sim/async_cut_options.h"

namespace strata::sim {

struct AsyncCutResult {
  std::string error;  // empty: every promise held
  uint64_t events = 0;
  uint64_t cuts = 0;     // complete
  uint64_t aborted = 0;  // cuts
  uint64_t refused = 0;  // of them those that a shard ended by itself
  uint64_t tries_of_last = 0;
  uint64_t kills = 0;
  uint64_t hbm_updated = 0;  // rows, where they lie in a GPU tier
  uint64_t hbm_evicted = 0;  // rows that left one for DRAM
  uint64_t impossible = 0;   // marks and pushes that were refused, for no such cut can exist
  uint64_t ahead = 0;  // pushes of the next cut that came to a shard before its cut was complete
};

// Promises checked. Of every complete cut, on every shard: each window before its lane's mark is in
// it exactly once, and none that the lane pushed after it. Shards restored from the cut and given
// every window after the marks hold each window exactly once. All windows take effect in the end:
// no push is held for ever, though a cut that fails is followed by another only when windows move.
// What names a cut that cannot exist is refused at once and changes nothing; what a lane sends
// never does, but to a shard that began again.
AsyncCutResult RunAsyncCuts(const AsyncCutOptions& options);

}  // namespace strata::sim

#endif  // STRATA_TESTS_SIM_ASYNC_CUT_SIM_H_

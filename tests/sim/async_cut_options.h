// The shape of a simulated asynchronous job, and what befalls it.
#ifndef STRATA_TESTS_SIM_ASYNC_CUT_OPTIONS_H_
#define STRATA_TESTS_SIM_ASYNC_CUT_OPTIONS_H_

#include <cstdint>
#include <string>

namespace strata::sim {

struct AsyncCutOptions {
  uint64_t seed = 0;
  uint32_t shards = 2;
  uint32_t lanes = 3;
  uint64_t tasks_per_lane = 3;
  uint64_t windows_per_task = 3;
  uint64_t pipeline = 2;  // windows of a lane that are not acknowledged yet
  // Chances in 1000 per event.
  uint32_t drop = 0;
  uint32_t duplicate = 0;
  uint32_t kill_shard = 0;
  uint32_t kill_lane = 0;
  uint32_t max_kills = 0;
  uint32_t fail_cut = 0;  // per shard that has taken one
  // The scheduler says nothing for a while; as long passes as shards wait for marks.
  uint32_t stop_scheduler = 0;
  uint32_t pass_time = 0;
  // A client names a cut that cannot exist, in a mark of any lane or a push of a window to come.
  uint32_t impossible = 0;
  // Tries of the last cut that come to nothing, at most; how many, and why, the seed says.
  uint32_t last_faults = 0;
  bool hbm = false;    // shards have a GPU tier on the host, the least
  std::string folder;  // scratch, for checkpoints
};

}  // namespace strata::sim

#endif  // STRATA_TESTS_SIM_ASYNC_CUT_OPTIONS_H_

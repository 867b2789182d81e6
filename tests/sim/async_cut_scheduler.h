// The scheduler's part in the simulation of asynchronous cuts: a CutCoordinator, and what stands in
// the way of the last cut.
#ifndef STRATA_TESTS_SIM_ASYNC_CUT_SCHEDULER_H_
#define STRATA_TESTS_SIM_ASYNC_CUT_SCHEDULER_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/strata/control.pb.h"
#include "scheduler/job/cuts/cut_coordinator.h"
#include "server/shard/cut.h"
#include "tests/sim/async_cut_options.h"

namespace strata::sim {

// Why a try of the last cut comes to nothing.
enum class LastFault : uint8_t {
  kNone,
  kNoFolder,    // a file is in the way: no try would mend it, while it is there
  kFull,        // a server has no room
  kNoPatience,  // a shard has ended the cut before it was told of it
  kManifest,    // the manifest cannot be written
  kShardDies,
  kLaneDies,
};

// A function of its options and of what it is told. Every acknowledged window makes a cut due.
class CutScheduler {
 public:
  using Result = scheduler::CutCoordinator::Result;
  using Outcome = scheduler::CutCoordinator::Outcome;

  explicit CutScheduler(const AsyncCutOptions& options);

  // Asks for the cut that is due at `now_ms`, if any. True: a try of the last one began.
  bool Plan(uint64_t windows, bool everything, bool ready, int64_t now_ms);
  // Of the shards' words: what is done is complete, unless its manifest cannot be written.
  std::vector<Result> Settle(int64_t now_ms);
  // Of cuts that are over it changes nothing.
  void Word(uint32_t shard, server::CutNumber cut, const server::ShardCut& said);
  // False: there was none.
  bool Abort();
  void ForgetShard(uint32_t shard) { cuts_.ForgetServer(shard); }

  server::CutNumber cut() const;  // pending; 0: none
  std::string folder() const;     // its
  server::CutNumber over() const { return cuts_.OverThrough(); }
  // The job has ended with a cut of everything.
  bool ended() const { return cuts_.Last() != nullptr; }
  bool given_up() const { return cuts_.GivenUp(); }
  // What befalls the pending try.
  LastFault fault() const { return fault_; }
  uint64_t tries_of_last() const { return tries_of_last_; }

 private:
  void DrawFault();

  const AsyncCutOptions o_;
  std::mt19937_64 random_;
  scheduler::CutCoordinator cuts_;
  uint32_t faults_left_;
  LastFault fault_ = LastFault::kNone;
  bool last_wanted_ = false;
  uint64_t tries_of_last_ = 0;
};

}  // namespace strata::sim

#endif  // STRATA_TESTS_SIM_ASYNC_CUT_SCHEDULER_H_

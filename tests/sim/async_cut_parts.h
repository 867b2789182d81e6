// What the simulation of asynchronous cuts is made of: shards, lanes, and what is on its way
// between them.
#ifndef STRATA_TESTS_SIM_ASYNC_CUT_PARTS_H_
#define STRATA_TESTS_SIM_ASYNC_CUT_PARTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "proto/runtime/base/executor.h"
#include "server/protocol/cut_barrier.h"
#include "server/shard/runner.h"
#include "server/shard/shard.h"
#include "tests/sim/async_cut_job.h"
#include "tests/sim/memory_log.h"

namespace strata::sim::cuts {

using server::CutNumber;

struct Shard {
  MemoryLog log;
  std::unique_ptr<ManualExecutor> executor;
  std::unique_ptr<server::ShardRunner> runner;
  uint64_t incarnation = 0;
  CutNumber told = 0, told_over = 0;
  CutNumber said_over = 0;                // by this incarnation
  const server::Shard* tables = nullptr;  // of the runner
};

struct Lane {
  uint64_t incarnation = 0;
  uint64_t task = 0;  // ordinal, of the next window
  uint64_t window = 0;
  CutNumber wanted = 0;
  CutNumber marked = 0;
  server::LaneMark mark;
  std::set<uint32_t> mark_missing;                                  // shards
  std::map<Window, std::pair<CutNumber, std::set<uint32_t>>> open;  // and the shards missing
  std::set<Window> done;                                            // acknowledged by all
  std::set<Window> sent;                                            // by this incarnation
  std::set<Window> of_the_dead;                                     // sent by earlier ones
};

struct Message {
  enum Kind { kPush, kMark, kPushed, kMarked } kind;
  uint32_t lane;
  uint64_t lane_incarnation;
  uint32_t shard;
  uint64_t shard_incarnation;  // replies
  Window window;
  CutNumber cut;
  server::LaneMark mark;
};

}  // namespace strata::sim::cuts

#endif  // STRATA_TESTS_SIM_ASYNC_CUT_PARTS_H_

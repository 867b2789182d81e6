// What the lanes of a simulated asynchronous job push, and what of it a cut must hold.
#ifndef STRATA_TESTS_SIM_ASYNC_CUT_JOB_H_
#define STRATA_TESTS_SIM_ASYNC_CUT_JOB_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "proto/core/ids.h"
#include "server/shard/runner.h"
#include "server/shard/shard.h"
#include "storage/log/update_log.h"
#include "tests/sim/async_cut_options.h"

namespace strata::sim {

using Window = std::pair<uint64_t, uint64_t>;  // task, window of it

// A function of its options. Every window has a row of its own on every shard, whose weight says
// how often it was applied.
class AsyncCutJob {
 public:
  explicit AsyncCutJob(const AsyncCutOptions& options);

  uint64_t TaskOf(uint32_t lane, uint64_t ordinal) const { return ordinal * o_.lanes + lane; }
  // All windows of a lane, in order.
  std::vector<Window> WindowsOf(uint32_t lane) const;
  server::ShardUpdate UpdateOf(uint32_t shard, const Window& w) const;
  std::unique_ptr<server::Shard> MakeShard(uint32_t shard, storage::UpdateLog* log) const;

  // What is wrong with a shard's file of a complete cut, or "": a window before its lane's mark
  // that is not in it once, one after it that is; and, once a shard restored from it was given all
  // windows after the marks, one that it does not hold once. `of_the_dead`: by lane, windows that a
  // host sent before it died; they may lie after the mark, for the next host repeats them.
  std::string CheckCut(uint32_t shard, const std::string& path, const server::ShardCut& cut,
                       const std::vector<std::set<Window>>& of_the_dead) const;

 private:
  struct Place {
    PartitionRange range;
    Position first, last;
  };
  // How often each window is in a file: by its row's distance from the shard's first.
  using Counts = std::map<uint64_t, int>;

  uint64_t RowOf(const Window& w) const { return 1 + w.first * o_.windows_per_task + w.second; }
  absl::Status Count(uint32_t shard, const std::string& path, Counts& counts) const;
  std::string CheckResumed(uint32_t shard, const std::string& path,
                           const server::ShardCut& cut) const;

  const AsyncCutOptions o_;
  std::vector<Place> places_;  // by shard
};

}  // namespace strata::sim

#endif  // STRATA_TESTS_SIM_ASYNC_CUT_JOB_H_

// Numbers of a shard for status and metrics.
// Tested by tests/server/shard/cut_consistency_test.cc
#ifndef STRATA_SERVER_SHARD_VIEW_H_
#define STRATA_SERVER_SHARD_VIEW_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "server/protocol/life_cycle_counters.h"

namespace strata::server {

// What others may read of a shard at any time.
struct ShardView {
  std::atomic<uint64_t> clock{0};       // committed
  std::atomic<uint64_t> log_end{0};     // step of the last entry of its log
  std::atomic<uint64_t> cuts_over{0};   // async: all cuts up to it
  std::atomic<uint64_t> lane_epoch{0};  // of the sessions that it takes pushes of
  std::atomic<uint64_t> refused_rows{0};
  std::atomic<uint64_t> clipped_rows{0};
  std::atomic<uint64_t> admitted_keys{0};
  std::atomic<uint64_t> refused_keys{0};
  std::array<std::atomic<uint64_t>, kRemovalRules> removed_rows{};  // by RemovalRule
  std::atomic<uint64_t> rows{0};
  std::vector<std::atomic<uint64_t>> table_rows;  // of rows, by table; as many as the shard has
  std::atomic<uint64_t> dram_bytes{0};
  std::atomic<uint64_t> hbm_rows{0};
  std::atomic<uint64_t> hbm_bytes{0};
  std::atomic<uint64_t> hbm_hits{0};
  std::atomic<uint64_t> hbm_evicted{0};
  std::atomic<uint64_t> hbm_written_back{0};
  std::atomic<uint64_t> hbm_gathered{0};
  std::atomic<uint64_t> hbm_updated{0};
  std::atomic<uint64_t> hbm_extra_bytes{0};
  std::atomic<uint64_t> dram_hits{0};
  std::atomic<uint64_t> pinned{0};
  std::atomic<uint64_t> ssd_reads{0};
  std::atomic<uint64_t> absent_reads{0};
  std::atomic<uint64_t> written_back{0};
  std::atomic<uint64_t> written_ahead{0};
  std::atomic<uint64_t> lane_mismatches{0};  // repeated contributions that differ from the first
  std::atomic<uint64_t> disk_errors{0};
};

}  // namespace strata::server

#endif  // STRATA_SERVER_SHARD_VIEW_H_

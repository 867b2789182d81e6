// What `strata top` shows of two scrapes of every process. Pure.
// Tested by tests/tools/cli/inspect/top_test.cc
#ifndef STRATA_TOOLS_CLI_INSPECT_TOP_TABLE_H_
#define STRATA_TOOLS_CLI_INSPECT_TOP_TABLE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tools/cli/inspect/top_scrape.h"

namespace strata {

// One process at one moment.
struct TopSample {
  std::string name;
  std::string role;  // "server" or "worker"
  bool alive = true;
  std::string metrics_address;
  absl::Time time;
  MetricValues metrics;  // empty: could not be had,
  std::string trouble;   // and this is why
  // Of bsp jobs; nothing without one.
  std::optional<uint64_t> clock;   // server: its smallest; worker: the step before its own
  std::optional<uint64_t> newest;  // the largest clock of the jobs that it has a part in
};

// Numbers of one process; nothing: not known, or not of this role.
struct TopRow {
  std::string name;
  std::string role;
  bool alive = true;
  std::string trouble;
  std::optional<double> cpu;  // cores in use
  std::optional<double> memory_bytes;
  std::optional<double> pulled_keys_per_second;
  std::optional<double> pushed_keys_per_second;
  std::optional<double> dram_hit_rate;  // of the rows that were looked for and exist
  std::optional<double> ssd_hit_rate;
  std::optional<double> hbm_hit_rate;  // of the GPU tier; 0 without one
  std::optional<double> queue;         // requests that are not answered yet
  std::optional<double> received_bytes_per_second;
  std::optional<double> sent_bytes_per_second;
  std::optional<double> examples_per_second;
  std::optional<uint64_t> clock;
  std::optional<uint64_t> lag;  // steps behind the newest clock
};

// `before` may be of another set of processes, or empty: then there are no rates. A counter that
// went back (a restart) has no rate either.
std::vector<TopRow> TopRows(const std::vector<TopSample>& before,
                            const std::vector<TopSample>& now);

// A table with a header line.
std::string TopTable(const std::vector<TopRow>& rows);
// One line; what is not known is null.
std::string TopJson(const std::vector<TopRow>& rows, absl::Time time);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_INSPECT_TOP_TABLE_H_

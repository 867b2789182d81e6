// What a cluster of processes may look like, and what may happen to it, while it trains a model
// that depends on none of it.
#ifndef STRATA_TESTS_E2E_P3_PROCESS_AXES_H_
#define STRATA_TESTS_E2E_P3_PROCESS_AXES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "proto/strata/job.pb.h"
#include "tests/e2e/p3/covering.h"

namespace strata::testing {

// All its servers have shards of every job.
struct Cluster {
  int servers;
  bool direct_log;  // written around the page cache
};

// What happens to processes while the job trains. Places are those of the last server.
enum class Story {
  kCalm,
  kCommits,    // killed before, within and behind a commit, one after the other
  kFiles,      // killed where images, tiers and streams of removals are read and written
  kTogether,   // two servers killed within the same step, on different shards
  kWorkerToo,  // a server at a commit, and a worker with it
  kAnything,   // kill -9 of one or several, from outside, three times
  kErrors,     // commits that fail for a while
};

struct ProcessRow {
  std::string model;  // of Models()
  Cluster cluster;
  Story story;
  size_t when;      // early, in the middle, late
  const char* ssd;  // below DRAM; "": nothing
  bool hbm;
  uint32_t workers;
  const char* log_bytes;  // "": as it is by default, as below
  const char* durability;
  uint32_t depth, threads;
  uint32_t cuts;  // a checkpoint after so many steps; 0: none
};

Axes ProcessAxes();
// The first axes, whose full product `tools/test --long` runs: cluster, model, story, when, tiers.
inline constexpr size_t kMainProcessAxes = 5;
ProcessRow ProcessRowOf(const Row& row);
std::string ToText(const ProcessRow& row);
const std::vector<Cluster>& Clusters();
const std::vector<std::string>& ProcessModels();

// The model's job as this row has it.
TrainingJob JobOf(const ProcessRow& row, TrainingJob job);

// Where the last server is killed, one after the other; each hit counts from its start.
std::vector<std::string> PlacesOf(const ProcessRow& row);

}  // namespace strata::testing

#endif  // STRATA_TESTS_E2E_P3_PROCESS_AXES_H_

// From a batch's features to the keys that a worker pulls and pushes: deduplicated, in position
// order, split by shard.
#ifndef STRATA_WORKER_STEP_ROUTER_H_
#define STRATA_WORKER_STEP_ROUTER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "proto/core/shard_map.h"
#include "proto/core/table_spec.h"
#include "proto/job/tables/model_tables.h"
#include "worker/step/batch.h"
#include "worker/step/key_runs.h"
#include "worker/step/shared_keys.h"

namespace strata {

// Finds the distinct keys of a batch. Owns scratch memory, so that a steady state allocates
// nothing but the lists of keys, which are shared; one thread at a time.
class Router {
 public:
  // Fills out from keys (one per feature, in batch order), all of one table. The result depends on
  // the keys alone.
  void Route(const TableSpec& table, std::span<const uint64_t> keys, RoutedKeys* out);
  // The same of a batch whose fields have their tables by `tables`.
  void Route(const ModelTables& tables, const Batch& batch, RoutedKeys* out);

 private:
  struct Slot {
    uint64_t key;
    uint32_t unique;
    uint32_t stamp;  // the Route call that wrote it: clearing costs nothing
  };
  // Writes numbers of distinct_, in order of first appearance.
  void Deduplicate(std::span<const uint64_t> keys, std::span<uint32_t> unique_of);
  void SortByPosition(const TableSpec& table);
  void SortFewByPosition(const TableSpec& table);
  // Appends the distinct keys of one table to what is listed so far, and writes their places.
  void RouteRun(const TableSpec& table, std::span<const uint64_t> keys,
                std::span<uint32_t> unique_of);
  // Gives `out` what is listed, and where each key occurs.
  void Finish(RoutedKeys* out);
  void SortFeatures(const ModelTables& tables, const Batch& batch);

  std::vector<Slot> slots_;
  uint32_t stamp_ = 0;
  std::vector<uint64_t> distinct_;  // in order of first appearance
  struct Placed {
    uint64_t position;
    uint32_t unique;
  };
  std::vector<Placed> placed_, spare_;
  std::vector<uint32_t> rank_;  // first-appearance number -> position order
  // The lists being made.
  std::vector<uint64_t> keys_, positions_;
  KeyRuns runs_;
  // Features by table, in batch order within one, where there are several.
  std::vector<size_t> first_of_table_;  // (tables + 1)
  std::vector<uint32_t> feature_of_;
  std::vector<uint64_t> sorted_keys_;
  std::vector<uint32_t> sorted_unique_;
};

// The union of several lanes' keys, and where each lane's keys are in it.
struct UnionKeys {
  SharedKeys keys;                           // (union), ascending by table, then by position
  SharedKeys positions;                      // (union)
  KeyRuns runs;                              // of keys, by table
  std::vector<std::vector<uint32_t>> place;  // [lane][unique of the lane]: index into keys
};
void MergeLanes(std::span<const RoutedKeys* const> lanes, UnionKeys* out);

// Calls body(own, all, floats) for every key of a lane: where the first float of its row is among
// the lane's rows and among those of the union, and how many there are. `widths`: by table.
template <typename Body>
void ForPlaces(std::span<const KeyRun> runs, std::span<const uint32_t> place,
               std::span<const KeyRun> of_union, std::span<const uint32_t> widths, Body body) {
  size_t own = 0, all = 0, u = 0;
  for (const KeyRun& run : runs) {
    // The union has a run of every table that a lane has one of.
    for (; of_union[u].table != run.table; ++u)
      all += of_union[u].count * widths[of_union[u].table];
    const size_t width = widths[run.table], first = of_union[u].first;
    for (size_t k = run.first; k < run.end(); ++k, own += width) {
      body(own, all + (place[k] - first) * width, width);
    }
  }
}

// A run of ascending positions that lies in one shard: indices begin .. end - 1.
struct ShardRun {
  ShardId shard;
  uint32_t server = 0;
  size_t begin = 0;
  size_t end = 0;
};
// Cuts ascending positions by shard; shards without positions have no run. O(shards x log n).
std::vector<ShardRun> SplitByShard(const ShardMap& map, std::span<const uint64_t> positions);

}  // namespace strata

#endif  // STRATA_WORKER_STEP_ROUTER_H_

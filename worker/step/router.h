// From a batch's features to the keys that a worker pulls and pushes: deduplicated, in position
// order, split by shard.
#ifndef STRATA_WORKER_STEP_ROUTER_H_
#define STRATA_WORKER_STEP_ROUTER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "proto/core/shard_map.h"
#include "proto/core/table_spec.h"
#include "worker/step/batch.h"
#include "worker/step/shared_keys.h"

namespace strata {

// Finds the distinct keys of a batch. Owns scratch memory, so that a steady state allocates
// nothing but the lists of keys, which are shared; one thread at a time.
class Router {
 public:
  // Fills out from keys (one per feature, in batch order). The result depends on the keys alone.
  void Route(const TableSpec& table, std::span<const uint64_t> keys, RoutedKeys* out);

 private:
  struct Slot {
    uint64_t key;
    uint32_t unique;
    uint32_t stamp;  // the Route call that wrote it: clearing costs nothing
  };
  void Deduplicate(std::span<const uint64_t> keys, std::vector<uint32_t>* unique_of);
  void SortByPosition(const TableSpec& table);

  std::vector<Slot> slots_;
  uint32_t stamp_ = 0;
  std::vector<uint64_t> distinct_;  // in order of first appearance
  struct Placed {
    uint64_t position;
    uint32_t unique;
  };
  std::vector<Placed> placed_, spare_;
  std::vector<uint32_t> rank_;  // first-appearance number -> position order
};

// The union of several lanes' keys, by position, and where each lane's keys are in it.
struct UnionKeys {
  SharedKeys keys;                           // (union), ascending by position
  SharedKeys positions;                      // (union)
  std::vector<std::vector<uint32_t>> place;  // [lane][unique of the lane]: index into keys
};
void MergeLanes(std::span<const RoutedKeys* const> lanes, UnionKeys* out);

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

// A small job for the server's tests, and an independent serial account of what it must become: one
// row at a time in an ordered map, gradients summed by recursion over the lane tree.
#ifndef STRATA_TESTS_SERVER_SHARD_SHARD_FIXTURE_H_
#define STRATA_TESTS_SERVER_SHARD_SHARD_FIXTURE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "proto/core/lane_tree.h"
#include "proto/core/partition.h"
#include "proto/core/table_spec.h"
#include "server/shard/shard.h"
#include "server/table/memory.h"
#include "storage/gpu/backend.h"
#include "storage/log/update_log.h"
#include "storage/row/hash.h"
#include "storage/row/layout.h"
#include "storage/tier/row_tier.h"
#include "tests/temp_folder.h"

namespace strata::server {

inline constexpr uint64_t kSeed = 77;
inline constexpr uint32_t kPartitions = 16;

// Table 0: hashed, embedding(4) ftrl + weight(1) plain sgd of rate 0.1. Table 1: dense, rows of 4,
// adam; tensors of 10 and 3 elements. With clipping, decay and schedules.
std::vector<TableSpec> TestTables();
// The same, but a feature gets its row at the second step that touches it, and loses it when two
// steps leave it alone.
std::vector<TableSpec> TestTablesWithLifeCycle();

// Gradient sums of one lane: table -> position -> floats.
using Sums = std::map<uint32_t, std::map<Position, std::vector<float>>>;
struct LaneWork {
  uint64_t examples = 0;
  Sums sums;
};

// What lane `lane` computes at `step`: a function of the two and of `seed` alone.
LaneWork WorkOf(uint64_t seed, uint64_t step, uint32_t lane);
// The sums of a node of the tree over `lanes` lanes, by the definition.
LaneWork NodeWork(uint64_t seed, uint64_t step, LaneNode node);
// As a shard takes it.
ShardUpdate UpdateFor(const LaneWork& work, Position first, Position last);

// The serial account.
class Reference {
 public:
  explicit Reference(std::vector<TableSpec> tables = TestTables());
  void Apply(const LaneWork& root, uint64_t number);
  std::vector<float> Weights(uint32_t table, Position position) const;
  storage::HashSum Hash() const;
  // Rows within a range only.
  storage::HashSum Hash(Position first, Position last) const;
  size_t rows() const;
  // What the last Apply removed, ascending: (table, position).
  const std::vector<std::pair<uint32_t, Position>>& removed() const { return removed_; }

 private:
  void Remove(uint64_t number);

  std::vector<TableSpec> tables_;
  std::vector<storage::RowLayout> layouts_;
  std::map<uint32_t, std::map<Position, uint32_t>> waiting_;  // steps of what has no row yet
  std::map<uint32_t, std::map<Position, std::vector<uint8_t>>> rows_;
  std::vector<std::pair<uint32_t, Position>> removed_;
};

// References after steps 0 .. steps.
std::vector<Reference> References(uint64_t seed, uint32_t lanes, uint64_t steps,
                                  const std::vector<TableSpec>& tables = TestTables());

struct ShardSetup {
  PartitionRange range{PartitionId(0), PartitionId(kPartitions - 1)};
  uint32_t id = 0;
  uint32_t lanes = 3;
  bool synchronous = true;
  storage::UpdateLog* log = nullptr;
  uint64_t dram_bytes = 0;
  storage::RowTier* tier = nullptr;
  uint64_t hbm_bytes = 0;  // of a GPU tier on the host
  std::vector<TableSpec> tables = TestTables();
};
std::unique_ptr<Shard> MakeShard(const ShardSetup& setup);

// Memory of GPU tiers, on one thread of the host.
storage::gpu::GpuBackendFactory GpuOnHost();

// Cuts 0 .. kPartitions-1 into `shards` runs.
std::vector<PartitionRange> Ranges(uint32_t shards);

std::unique_ptr<storage::UpdateLog> OpenLog(const std::string& folder);

}  // namespace strata::server

#endif  // STRATA_TESTS_SERVER_SHARD_SHARD_FIXTURE_H_

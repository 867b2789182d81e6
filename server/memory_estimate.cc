#include "server/memory_estimate.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/core/ids.h"
#include "storage/rocks_tier.h"
#include "storage/row_layout.h"
#include "storage/row_store.h"

namespace strata::server {
namespace {

// Measured: a job's threads, queues and open files.
constexpr uint64_t kJobBytes = uint64_t{7} << 20;
// What gRPC reads ahead of one connection (proto/runtime/grpc_server.cc: lookahead and one read),
// reached with messages of a twelfth of it.
constexpr uint64_t kConnectionBytes = uint64_t{20} << 20;
constexpr uint64_t kConnectionMessages = 12;

uint64_t CeilDiv(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

uint64_t DenseRowsOf(const TableSpec& table) {
  uint64_t rows = 0;
  for (const TensorSpec& tensor : table.tensors) rows += tensor.Rows(table.dim());
  return rows;
}

// A table without a limit: `shards` of the server have rows of it.
uint64_t UnlimitedBytes(const TableSpec& table, uint64_t rows, uint64_t shards) {
  if (rows == 0) return 0;
  storage::RowStoreOptions options;
  options.row_bytes = storage::RowLayout::For(table).row_bytes();
  return shards * storage::RowStore::MostBytesFor(options, CeilDiv(rows, shards));
}

// Bytes of one key of a table on the wire and in sums: key, weights and counts.
uint64_t ValueBytes(const TableSpec& table) { return 8 + 4 * uint64_t{table.push_dim()}; }

// Bytes of `keys` rows of the hashed tables and of the whole dense ones, this server's share.
uint64_t StepBytes(const ServerLoad& load, uint64_t keys) {
  uint64_t bytes = 0;
  for (const TableSpec& table : load.tables) {
    const uint64_t n = table.kind == TableKind::kDense ? DenseRowsOf(table) : keys;
    bytes += CeilDiv(n * ValueBytes(table), load.servers);
  }
  return bytes;
}

void AddTables(const ServerLoad& load, std::vector<MemoryPart>& parts) {
  uint64_t needed = 0;
  for (const TableSpec& table : load.tables) {
    const bool dense = table.kind == TableKind::kDense;
    const uint64_t rows = CeilDiv(dense ? DenseRowsOf(table) : load.rows, load.servers);
    // A tensor lies in one partition.
    const uint64_t shards =
        dense
            ? std::clamp<uint64_t>(CeilDiv(table.tensors.size(), load.servers), 1, load.shards_here)
            : load.shards_here;
    const uint64_t bytes = UnlimitedBytes(table, rows, shards);
    needed += bytes;
    if (load.dram_bytes > 0) continue;
    parts.push_back({absl::StrCat("rows and index, table ", table.name), bytes,
                     absl::StrCat(rows, " rows x (", storage::RowLayout::For(table).row_bytes(),
                                  " + 8) + index (6.67 to 7.25 a row)")});
  }
  if (load.dram_bytes == 0) return;
  parts.push_back({"rows and index in DRAM", std::min(needed, load.dram_bytes),
                   absl::StrCat("min(dramBytesPerServer, ", needed, " that all rows need)")});
  if (needed <= load.dram_bytes) return;
  const storage::RocksTierOptions tier;
  const uint64_t below = needed - load.dram_bytes;
  const uint64_t memtables = storage::kMaxMemtables * tier.memtable_bytes;
  parts.push_back({"SSD tier: memtables", std::min(memtables, below),
                   absl::StrCat("min(", memtables, ", bytes of rows below)")});
  parts.push_back({"SSD tier: block cache", std::min(tier.block_cache_bytes, below),
                   absl::StrCat("min(", tier.block_cache_bytes, ", bytes of rows below)")});
}

}  // namespace

std::vector<MemoryPart> EstimateServer(const ServerLoad& load) {
  std::vector<MemoryPart> parts;
  AddTables(load, parts);
  for (const TableSpec& table : load.tables) {
    if (table.life_cycle.admission.partition_bytes == 0) continue;
    parts.push_back(
        {absl::StrCat("admission filters, table ", table.name),
         CeilDiv(table.life_cycle.admission.partition_bytes * load.partitions, load.servers),
         "spec.lifeCycle.admission.filterBytes / servers"});
  }
  const uint64_t push = StepBytes(load, load.keys_per_push);
  const uint64_t step = StepBytes(load, load.keys_per_step);
  const uint64_t pushes = load.workers * push;
  parts.push_back({load.synchronous ? "gate: contributions held" : "requests", pushes,
                   "workers x (keys of a push x (8 + 4 dim) + dense rows)"});
  if (load.synchronous) {
    // The contribution of a single worker is the sum.
    if (load.workers > 1) {
      parts.push_back({"sums of a step", step, "keys of a step x (8 + 4 dim) + dense rows"});
    }
    parts.push_back({"pre-images", step, "keys of a step x (8 + 4 dim) + dense rows"});
  }
  parts.push_back({"log record", load.synchronous ? step : pushes,
                   load.synchronous ? "as the pre-images" : "as the requests"});
  parts.push_back({"replies", pushes, "as the requests of a push"});
  parts.push_back({"threads and queues of the job", kJobBytes, "measured", true});
  return parts;
}

uint64_t EstimateConnections(const ServerLoad& load) {
  const uint64_t push = StepBytes(load, load.keys_per_push);
  return load.workers * std::min(kConnectionBytes, kConnectionMessages * push);
}

}  // namespace strata::server

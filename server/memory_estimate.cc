#include "server/memory_estimate.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/core/ids.h"
#include "storage/absent_memo.h"
#include "storage/huge_memory.h"
#include "storage/log_batch.h"
#include "storage/rocks_tier.h"
#include "storage/row_file_tier.h"
#include "storage/row_layout.h"
#include "storage/row_store.h"
#include "storage/tier_memory.h"

namespace strata::server {
namespace {

// Measured: a job's threads, queues and open files.
constexpr uint64_t kJobBytes = uint64_t{7} << 20;
// What gRPC reads ahead of one connection (proto/runtime/grpc_server.cc: lookahead and one read),
// reached with messages of a twelfth of it.
constexpr uint64_t kConnectionBytes = uint64_t{20} << 20;
constexpr uint64_t kConnectionMessages = 12;
// A page of messages and log records of that size and above.
constexpr uint64_t kHugePage = storage::HugeMemory::kHugePage;
// Position and slot of a key that a ticket remembers (server/request_keys.h), and the tickets of a
// worker that are held: of the step that is pushed, and of the next one.
constexpr uint64_t kTicketKeyBytes = 12;
constexpr uint64_t kTickets = 2;

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

// What a block of that many bytes takes up: whole huge pages where it has one.
uint64_t Paged(uint64_t bytes) {
  return bytes < kHugePage ? bytes : CeilDiv(bytes, kHugePage) * kHugePage;
}

uint64_t KeysHere(const ServerLoad& load) { return CeilDiv(load.keys_per_push, load.servers); }

// Each shard has a record of a step or window in memory, whole pages of it, while it is written.
MemoryPart LogPart(const ServerLoad& load, uint64_t bytes) {
  const uint64_t pieces = std::min<uint64_t>(load.shards_here, storage::BatchMemory::kKept);
  const uint64_t record =
      std::min(storage::BatchMemory::kBytes, Paged(CeilDiv(bytes, load.shards_here)));
  return {"log records", pieces * record,
          absl::StrCat(pieces, " x min(8 MiB, ", record, " of a shard's share, in whole pages)")};
}

// The tier below a limit of so many bytes that all rows need.
void AddTier(const ServerLoad& load, uint64_t needed, std::vector<MemoryPart>& parts) {
  storage::TierLoad tier;
  tier.threads = load.threads;
  uint64_t memo = 0;
  for (const TableSpec& table : load.tables) {
    if (table.kind == TableKind::kDense) continue;
    storage::RowStoreOptions options;
    options.row_bytes = storage::RowLayout::For(table).row_bytes();
    const uint64_t rows = CeilDiv(load.rows, load.servers);
    const double share =
        static_cast<double>(load.dram_bytes) / static_cast<double>(needed);  // of the rows, in DRAM
    const auto in_dram = static_cast<uint64_t>(share * static_cast<double>(rows));
    tier.rows += rows - in_dram;
    tier.row_bytes = std::max(tier.row_bytes, options.row_bytes);
    memo += load.shards_here * storage::AbsentMemo::Bytes(in_dram / load.shards_here);
  }
  if (tier.rows == 0) return;
  const std::vector<MemoryPart> below =
      load.row_file ? storage::RowFileTierMemory({}, tier) : storage::RocksTierMemory({}, tier);
  parts.insert(parts.end(), below.begin(), below.end());
  parts.push_back({"keys known to be absent", memo, "shards x min(512 KiB, 8 x rows in DRAM)"});
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
  AddTier(load, needed, parts);
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
  const uint64_t pushes = load.workers * Paged(push);
  parts.push_back({load.synchronous ? "gate: contributions held" : "requests", pushes,
                   "workers x (keys of a push x (8 + 4 dim) + dense rows), in whole pages"});
  if (load.synchronous) {
    // The contribution of a single worker is the sum.
    if (load.workers > 1) {
      parts.push_back({"sums of a step", step, "keys of a step x (8 + 4 dim) + dense rows"});
    }
    parts.push_back({"pre-images", step, "keys of a step x (8 + 4 dim) + dense rows"});
    parts.push_back({"tickets", load.workers * kTickets * kTicketKeyBytes * KeysHere(load),
                     "workers x 2 x 12 x keys of a push"});
  }
  if (load.logged) parts.push_back(LogPart(load, load.synchronous ? step : pushes));
  parts.push_back({"replies", pushes, "as the requests of a push"});
  parts.push_back({"threads and queues of the job", kJobBytes, "measured", true});
  return parts;
}

uint64_t EstimateConnections(const ServerLoad& load) {
  const uint64_t push = StepBytes(load, load.keys_per_push);
  return load.workers * std::min(kConnectionBytes, kConnectionMessages * push);
}

}  // namespace strata::server

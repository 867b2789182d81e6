#include "server/memory_estimate.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/dram_estimate.h"
#include "server/snapshot/driver.h"
#include "server/snapshot/turn.h"
#include "server/table/change_list.h"
#include "server/table/device_stage.h"
#include "server/table/gpu_memory.h"
#include "server/table/shard_table.h"
#include "server/table/snapshot.h"
#include "storage/delta/removed_stream.h"
#include "storage/gpu/device/backend.h"
#include "storage/gpu/device/memory.h"
#include "storage/gpu/shape.h"
#include "storage/io/file_stream.h"
#include "storage/io/huge_memory.h"
#include "storage/log/batch.h"
#include "storage/rocks/memory.h"
#include "storage/rocks/tier.h"
#include "storage/row/layout.h"
#include "storage/row_file/memory.h"
#include "storage/row_file/tier.h"
#include "storage/tier/load.h"
#include "storage/tiered/absent_memo.h"

namespace strata::server {
namespace {

// Measured: a job's threads, queues and open files.
constexpr uint64_t kJobBytes = uint64_t{7} << 20;
// What gRPC reads ahead of one connection (proto/runtime/transport/grpc_server.cc: lookahead and
// one read), reached with messages of a twelfth of it.
constexpr uint64_t kConnectionBytes = uint64_t{20} << 20;
constexpr uint64_t kConnectionMessages = 12;
// A page of messages and log records of that size and above.
constexpr uint64_t kHugePage = storage::HugeMemory::kHugePage;
// Lists of a GPU table, for each position of a chunk, beside a row that is born there, and for each
// staging place.
constexpr uint64_t kGpuListBytes = 80;
constexpr uint64_t kGpuPlaceBytes = 32;
// What its Scan keeps of dirty rows, at most so many at a time.
constexpr uint64_t kGpuDirtyBytes = 24;
constexpr uint64_t kGpuDirtyRows = uint64_t{1} << 20;
// Position and slot of a key that a ticket remembers (server/shard/request_keys.h), and the tickets
// of a worker that are held: of the step that is pushed, and of the next one.
constexpr uint64_t kTicketKeyBytes = 12;
constexpr uint64_t kTickets = 2;

uint64_t CeilDiv(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

// Bytes of one key of a table on the wire and in sums: key, weights and counts.
uint64_t ValueBytes(const TableSpec& table) { return 8 + 4 * uint64_t{table.push_dim()}; }

// Bytes of so many rows of the hashed tables and of the whole dense ones, this server's share.
uint64_t StepBytes(const ServerLoad& load, uint64_t TableKeys::*keys) {
  uint64_t bytes = 0;
  for (const TableSpec& table : load.tables) {
    const uint64_t n =
        table.kind == TableKind::kDense ? DenseRowsOf(table) : KeysOf(load, table).*keys;
    bytes += CeilDiv(n * ValueBytes(table), load.servers);
  }
  return bytes;
}

// Bytes of the values that a request or a reply of a worker has with it.
uint64_t MessageBytes(const ServerLoad& load) {
  uint64_t bytes = StepBytes(load, &TableKeys::per_push);
  if (!load.rows_there) return bytes;
  for (const TableSpec& table : load.tables) {
    if (table.kind == TableKind::kDense) continue;
    bytes -= CeilDiv(KeysOf(load, table).per_push * (ValueBytes(table) - 8), load.servers);
  }
  return bytes;
}

// What a block of that many bytes takes up: whole huge pages where it has one.
uint64_t Paged(uint64_t bytes) {
  return bytes < kHugePage ? bytes : CeilDiv(bytes, kHugePage) * kHugePage;
}

uint64_t KeysHere(const ServerLoad& load) { return CeilDiv(load.keys_per_push, load.servers); }
uint64_t KeysOfShard(const ServerLoad& load, const TableSpec& table) {
  return CeilDiv(CeilDiv(KeysOf(load, table).per_push, load.servers), load.shards_here);
}

// Rows that a device has not, on their way to and from where the others are.
MemoryPart StagePart(const ServerLoad& load) {
  uint64_t bytes = 0;
  for (const TableSpec& table : load.tables) {
    if (table.kind == TableKind::kDense) continue;
    const uint64_t rows = std::min<uint64_t>(kGpuDeviceBatch, KeysOfShard(load, table));
    bytes += load.shards_here * std::min<uint64_t>(DeviceStage::kBytes, rows * 4 * table.dim());
  }
  return {"rows between the host and the GPU", bytes,
          "shards x tables x min(4 MiB, 4096 keys x 4 dim)"};
}

// Each shard has a record of a step or window in memory, whole pages of it, while it is written.
MemoryPart LogPart(const ServerLoad& load, uint64_t bytes) {
  const uint64_t pieces = std::min<uint64_t>(load.shards_here, storage::BatchMemory::kKept);
  const uint64_t record =
      std::min(storage::BatchMemory::kBytes, Paged(CeilDiv(bytes, load.shards_here)));
  return {"log records", pieces * record,
          absl::StrCat(pieces, " x min(8 MiB, ", record, " of a shard's share, in whole pages)")};
}

// The tier below the limit. `tables`: of TablesInDram.
void AddTier(const ServerLoad& load, const std::vector<TableInDram>& tables,
             std::vector<MemoryPart>& parts) {
  storage::TierLoad tier;
  tier.threads = load.threads;
  uint64_t memo = 0;
  for (size_t i = 0; i < tables.size(); ++i) {
    const TableSpec& table = load.tables[i];
    if (table.kind == TableKind::kDense || tables[i].needed == 0) continue;
    const uint64_t rows = CeilDiv(KeysOf(load, table).rows, load.servers);
    const double share = static_cast<double>(tables[i].in_dram()) /
                         static_cast<double>(tables[i].needed);  // of the rows, in DRAM
    const auto in_dram = static_cast<uint64_t>(share * static_cast<double>(rows));
    tier.rows += rows - in_dram;
    tier.row_bytes = std::max(tier.row_bytes, storage::RowLayout::For(table).row_bytes());
    memo += load.shards_here * storage::AbsentMemo::Bytes(in_dram / load.shards_here);
  }
  if (tier.rows == 0) return;
  const std::vector<MemoryPart> below =
      load.row_file ? storage::RowFileTierMemory({}, tier) : storage::RocksTierMemory({}, tier);
  parts.insert(parts.end(), below.begin(), below.end());
  parts.push_back({"keys known to be absent", memo, "shards x min(512 KiB, 8 x rows in DRAM)"});
}

bool SharesAreEqual(const std::vector<TableSpec>& tables) {
  uint32_t first = 0;
  return std::all_of(tables.begin(), tables.end(), [&first](const TableSpec& t) {
    if (t.kind == TableKind::kDense) return true;
    if (first == 0) first = t.dram_share;
    return t.dram_share == first;
  });
}

void AddTables(const ServerLoad& load, std::vector<MemoryPart>& parts) {
  const std::vector<TableInDram> tables = TablesInDram(load);
  uint64_t needed = 0, in_dram = 0, hashed = 0;
  for (size_t i = 0; i < tables.size(); ++i) {
    const TableSpec& table = load.tables[i];
    needed += tables[i].needed;
    in_dram += tables[i].in_dram();
    hashed += table.kind == TableKind::kHashed ? 1 : 0;
    if (load.dram_bytes > 0) continue;
    parts.push_back({absl::StrCat("rows and index, table ", table.name), tables[i].needed,
                     absl::StrCat(RowsHere(load, table), " rows x (",
                                  storage::RowLayout::For(table).row_bytes(),
                                  " + 8) + index (6.67 to 7.25 a row)")});
  }
  if (load.dram_bytes == 0) return;
  parts.push_back({"rows and index in DRAM", std::min(in_dram, load.dram_bytes),
                   hashed > 1
                       ? absl::StrCat("of dramBytesPerServer, which ", hashed, " tables share",
                                      SharesAreEqual(load.tables) ? " equally" : " by dramShare",
                                      "; all rows need ", needed)
                       : absl::StrCat("min(dramBytesPerServer, ", needed, " that all rows need)")});
  if (needed > in_dram || needed > load.dram_bytes) AddTier(load, tables, parts);
}

// Shapes of the GPU tables of one shard; none where the limit is too small for them.
std::vector<storage::gpu::GpuShape> GpuShapes(const ServerLoad& load) {
  std::vector<storage::gpu::GpuShape> shapes;
  if (load.hbm_bytes == 0) return shapes;
  const auto limits =
      DivideHbm(load.tables, load.eviction, load.hbm_bytes / load.shards_here, load.shards_here);
  for (size_t i = 0; limits.ok() && i < limits->size(); ++i) {
    const auto shape =
        storage::gpu::GpuShapeFor((*limits)[i], storage::RowLayout::For(load.tables[i]).row_bytes(),
                                  kGpuBucketSlots, load.eviction);
    if (shape.ok()) shapes.push_back(*shape);
  }
  return shapes;
}

// Of one table of one shard.
storage::gpu::GpuDeviceBytes TierBytes(const storage::gpu::GpuShape& shape) {
  return storage::gpu::GpuDeviceBytes::WithoutScratch(
      shape, storage::gpu::GpuDeviceBytes::MostBatch(
                 shape, kGpuDeviceBatch, storage::gpu::DeviceGpuOptions{}.pinned_bytes));
}

// What the GPU tier takes of the host (storage/gpu/table.h).
void AddGpuTier(const ServerLoad& load, std::vector<MemoryPart>& parts) {
  if (load.hbm_on_host) {
    parts.push_back({"GPU tier, in the host's memory", load.hbm_bytes, "gpuBytesPerServer"});
  }
  uint64_t lists = 0, pinned = 0;
  for (const storage::gpu::GpuShape& shape : GpuShapes(load)) {
    pinned += load.shards_here * TierBytes(shape).pinned();
    lists += load.shards_here * ((kGpuListBytes + shape.row_bytes) *
                                     std::min(ShardTable::kChunkRows, shape.slots() / 2) +
                                 kGpuPlaceBytes * shape.places);
  }
  if (lists == 0) return;
  parts.push_back({"lists of the GPU tier", lists,
                   "shards x tables x ((80 + row) x 2048 keys of a chunk + 32 x staging places)"});
  if (load.hbm_on_host) return;
  parts.push_back(
      {"pinned memory of the GPU tier", pinned, "shards x tables x 4096 keys x (3 rows + 32)"});
}

uint64_t FilterBytes(const ServerLoad& load, const TableSpec& table) {
  return CeilDiv(table.life_cycle.admission.partition_bytes * load.partitions, load.servers);
}

bool Removes(const TableSpec& table) { return table.life_cycle.removal.any(); }

// Of RowsHere, the rows that one commit of all shards here may change or remove.
uint64_t RowsOfCommit(const ServerLoad& load, const TableSpec& table) {
  const uint64_t rows = RowsHere(load, table);
  if (table.kind == TableKind::kDense) return rows;
  const TableKeys keys = KeysOf(load, table);
  uint64_t touched = CeilDiv(load.synchronous ? keys.per_step : keys.per_push, load.servers);
  if (Removes(table)) {
    const uint64_t shards = uint64_t{load.servers} * load.shards_here;
    const uint64_t partitions = CeilDiv(load.partitions, shards);  // of a shard
    const uint64_t due = CeilDiv(partitions, table.life_cycle.removal.every_steps);
    touched += CeilDiv(rows, partitions) * due;
  }
  return std::min(rows, touched);
}

// What snapshots copy of rows: all of them, and what a commit may change, with their positions.
struct SnapshotRows {
  uint64_t all = 0;
  uint64_t of_commit = 0;
  uint64_t of_piece = 0;  // the largest of any table
};
SnapshotRows SnapshotRowsOf(const ServerLoad& load) {
  SnapshotRows out;
  for (const TableSpec& table : load.tables) {
    const uint64_t row = storage::RowLayout::For(table).row_bytes();
    out.all += RowsHere(load, table) * (8 + row);
    out.of_commit += RowsOfCommit(load, table) * (8 + row);
    const uint64_t rows = TableSnapshot::kPieceBytes / row + 1;
    out.of_piece = std::max(out.of_piece, rows * (8 + row));
  }
  return out;
}

// 8 bytes an entry of each list, in memory that doubles: of the checkpoint that is written, and of
// the next one.
uint64_t ChangeListBytes(const ServerLoad& load) {
  uint64_t entries = 0;
  for (const TableSpec& table : load.tables) {
    const uint64_t rows = CeilDiv(RowsHere(load, table), load.shards_here);
    const uint64_t limit = ChangeList::Limit(rows);
    entries += load.shards_here * (Removes(table) ? limit : std::min(rows, limit));
  }
  return 2 * 2 * 8 * entries;
}

}  // namespace

std::vector<MemoryPart> EstimateServer(const ServerLoad& load) {
  std::vector<MemoryPart> parts;
  AddTables(load, parts);
  AddGpuTier(load, parts);
  if (load.rows_there) parts.push_back(StagePart(load));
  for (const TableSpec& table : load.tables) {
    const uint64_t bytes = FilterBytes(load, table);
    if (bytes == 0) continue;
    parts.push_back({absl::StrCat("admission filters, table ", table.name), bytes,
                     "spec.lifeCycle.admission.filterBytes / servers"});
  }
  const uint64_t step = StepBytes(load, &TableKeys::per_step);
  const uint64_t pushes = load.workers * Paged(MessageBytes(load));
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
  if (load.logged) {
    const uint64_t windows = load.workers * Paged(StepBytes(load, &TableKeys::per_push));
    parts.push_back(LogPart(load, load.synchronous ? step : windows));
  }
  if (load.removed_stream && std::any_of(load.tables.begin(), load.tables.end(), Removes)) {
    parts.push_back({"removed keys on their way to files",
                     load.shards_here * storage::RemovedWriter::kMostBytes,
                     "shards x (2 x 256 KiB + 16 KiB)"});
  }
  parts.push_back({"replies", pushes, "as the requests of a push"});
  parts.push_back({"threads and queues of the job", kJobBytes, "measured", true});
  return parts;
}

std::vector<MemoryPart> EstimateServerDevice(const ServerLoad& load) {
  const std::vector<storage::gpu::GpuShape> shapes = GpuShapes(load);
  if (shapes.empty() || load.hbm_on_host) return {};
  uint64_t tier = 0;
  for (const storage::gpu::GpuShape& shape : shapes) {
    tier += load.shards_here * TierBytes(shape).device();
  }
  std::vector<MemoryPart> parts = {
      {"GPU tier", tier, "gpuBytesPerServer, and shards x tables x 4096 keys x (row + 96)"}};
  if (!load.synchronous) return parts;
  uint64_t images = 0;
  for (const TableSpec& table : load.tables) {
    if (table.kind == TableKind::kDense) continue;
    const uint64_t keys = CeilDiv(KeysOf(load, table).per_step, load.servers);
    // A shard's last chunk may begin a piece of its own.
    const uint64_t chunk =
        std::min<uint64_t>(ShardTable::kChunkRows, CeilDiv(keys, load.shards_here));
    images += (keys + keys / 4 + load.shards_here * chunk) * 4 * table.dim();
  }
  parts.push_back({"pre-images", images, "(5/4 x keys of a step + shards x at most 2048) x 4 dim"});
  return parts;
}

std::vector<MemoryPart> EstimateSnapshots(const ServerLoad& load) {
  static_assert(kSnapshotsAtOnce == 2);
  const uint64_t at_once = (load.logged ? 1 : 0) + (load.checkpoints ? 1 : 0);
  if (at_once == 0) return {};
  const uint64_t shards = load.shards_here;
  const SnapshotRows rows = SnapshotRowsOf(load);
  std::vector<MemoryPart> parts;
  parts.push_back(
      {"rows kept as they were",
       2 * std::min(shards * kSnapshotHeldBytes + at_once * rows.of_commit, at_once * rows.all),
       absl::StrCat("2 x min(shards x 64 MiB + ", at_once, " x rows of a commit, ", at_once,
                    " x all rows)")});
  const uint64_t pieces =
      std::min(shards * SnapshotDriver::kQueuePieces * 2 * rows.of_piece, 2 * rows.all);
  parts.push_back({"pieces on their way to files",
                   at_once * (pieces + shards * storage::FileStream::kStagingBytes),
                   absl::StrCat(at_once, " x shards x (8 pieces of 256 KiB, twice, + 1 MiB)")});
  uint64_t dirty = 0;
  for (const storage::gpu::GpuShape& shape : GpuShapes(load)) {
    dirty += at_once * shards * kGpuDirtyBytes * std::min(kGpuDirtyRows, shape.slots());
  }
  if (dirty > 0) {
    parts.push_back({"dirty rows of the GPU tier", dirty,
                     absl::StrCat(at_once, " x shards x tables x 24 x min(2^20, its rows)")});
  }
  uint64_t copies =
      load.synchronous && load.logged ? StepBytes(load, &TableKeys::per_step) : uint64_t{0};
  for (const TableSpec& table : load.tables) copies += at_once * FilterBytes(load, table);
  if (copies > 0) {
    parts.push_back({"copies of filters and pre-images", copies,
                     absl::StrCat(at_once, " x admission filters + pre-images")});
  }
  if (load.checkpoints && load.increments) {
    parts.push_back({"lists of changed rows", ChangeListBytes(load),
                     "4 x 8 x max(65536, rows / 4) a table and shard"});
  }
  return parts;
}

uint64_t EstimateConnections(const ServerLoad& load) {
  const uint64_t push = StepBytes(load, &TableKeys::per_push);
  return load.workers * std::min(kConnectionBytes, kConnectionMessages * push);
}

}  // namespace strata::server

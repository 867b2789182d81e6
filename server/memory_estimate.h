// How much memory a job takes on one of its servers, by formula (`strata estimate`).
// Tested by tests/tools/cli/data/estimate_memory_test.cc
#ifndef STRATA_SERVER_MEMORY_ESTIMATE_H_
#define STRATA_SERVER_MEMORY_ESTIMATE_H_

#include <cstdint>
#include <vector>

#include "proto/core/memory_part.h"
#include "proto/core/table_spec.h"
#include "storage/eviction/kind.h"

namespace strata::server {

// Distinct keys of one table, over all servers.
struct TableKeys {
  uint64_t rows = 0;      // that get a row
  uint64_t per_push = 0;  // of what one worker pushes at once
  uint64_t per_step = 0;  // of a whole step
};

struct ServerLoad {
  std::vector<TableSpec> tables;
  // By table; of dense ones unused. Empty: there is one hashed table, which has all of them.
  std::vector<TableKeys> of_table;
  uint64_t rows = 0;         // features that get a row, over all servers and tables
  uint32_t servers = 1;      // of the job
  uint32_t shards_here = 1;  // of the job on this server
  uint32_t workers = 1;      // of the job
  uint32_t partitions = 1;   // of the job
  uint64_t dram_bytes = 0;   // spec.storage.dramBytesPerServer; 0: no limit
  uint64_t hbm_bytes = 0;    // spec.storage.gpuBytesPerServer; 0: no GPU tier
  bool hbm_on_host = false;  // spec.storage.gpuBackend is host
  storage::EvictionKind eviction = storage::EvictionKind::kLrfu;
  bool row_file = false;        // what lies below it: a row file, else RocksDB
  bool logged = true;           // spec.storage.durability is not memory: base images are written
  bool checkpoints = false;     // spec.checkpoint.directory is given
  bool increments = false;      // spec.checkpoint.fullEvery is above 1
  bool removed_stream = false;  // spec.output.removed is given
  uint32_t threads = 1;         // that run shards
  bool synchronous = true;
  // Distinct keys, over all servers and tables: of what one worker pushes at once, and of a whole
  // step.
  uint64_t keys_per_push = 0;
  uint64_t keys_per_step = 0;
  // Rows of pulls and pushes lie in the memory of a device that workers of this process share
  // (DESIGN.md section 6, "Rows that stay there").
  bool rows_there = false;
};

// Resident bytes of the server's parts, once the rows are there and the busiest step has been. What
// one process has beside jobs (code, gRPC, its threads) is not among them.
std::vector<MemoryPart> EstimateServer(const ServerLoad& load);

// What the job takes of a GPU's memory on this server; none where the host stands for it.
//   GPU tier    shards x tables x GpuDeviceBytes (storage/gpu/device/memory.h), but for its sort's
//               scratch
//   pre-images  bsp: 5/4 x keys of a step x 4 dim, and a chunk for each shard
//               (server/table/preimages.h)
std::vector<MemoryPart> EstimateServerDevice(const ServerLoad& load);

// What it may take beside that while base images and checkpoints are written and commits go on.
// With S snapshots of a shard at once (2: an image and a checkpoint; 1: only one of them is ever
// written), and rows of this server of 8 + row bytes each:
//   rows kept as they were  2 x min(shards x 64 MiB + S x rows of a commit, S x all rows);
//                           twice, since the memory that they lie in grows by doubling
//   pieces                  S x (min(shards x 8 x P, 2 x all rows) + shards x 1 MiB of staging),
//                           where P is 2 x (256 KiB + a row, with positions)
//   filters, pre-images     S x admission filters + pre-images of a step (bsp, images)
//   lists of changed rows   increments: 2 lists x 2 x 8 x at most max(65536, rows / 4) of each
//                           table and shard
// A commit has the keys of a step (asynchronous: of a push), and what removal rules take of the
// partitions that they look at in it. Bounds of server/snapshot/driver.h, server/table/snapshot.h
// and server/table/change_list.h: what is really kept are the rows that change while a file is
// written.
std::vector<MemoryPart> EstimateSnapshots(const ServerLoad& load);

// What the connections of the workers take in a process of its own (none are between objects of one
// process).
uint64_t EstimateConnections(const ServerLoad& load);

}  // namespace strata::server

#endif  // STRATA_SERVER_MEMORY_ESTIMATE_H_

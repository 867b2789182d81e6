// How much memory a job takes on one of its servers, by formula (`strata estimate`).
// Tested by tests/tools/cli/data/estimate_memory_test.cc
#ifndef STRATA_SERVER_MEMORY_ESTIMATE_H_
#define STRATA_SERVER_MEMORY_ESTIMATE_H_

#include <cstdint>
#include <vector>

#include "proto/core/memory_part.h"
#include "server/server_load.h"

namespace strata::server {

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

// How much memory a job takes on one of its servers, by formula (`strata estimate`).
#ifndef STRATA_SERVER_MEMORY_ESTIMATE_H_
#define STRATA_SERVER_MEMORY_ESTIMATE_H_

#include <cstdint>
#include <vector>

#include "proto/core/memory_part.h"
#include "proto/core/table_spec.h"

namespace strata::server {

struct ServerLoad {
  std::vector<TableSpec> tables;
  uint64_t rows = 0;         // features that get a row, over all servers
  uint32_t servers = 1;      // of the job
  uint32_t shards_here = 1;  // of the job on this server
  uint32_t workers = 1;      // of the job
  uint32_t partitions = 1;   // of the job
  uint64_t dram_bytes = 0;   // spec.storage.dramBytesPerServer; 0: no limit
  bool row_file = false;     // what lies below it: a row file, else RocksDB
  bool logged = true;        // spec.storage.durability is not memory
  uint32_t threads = 1;      // that run shards
  bool synchronous = true;
  // Distinct keys, over all servers: of what one worker pushes at once, and of a whole step.
  uint64_t keys_per_push = 0;
  uint64_t keys_per_step = 0;
};

// Resident bytes of the server's parts, once the rows are there and the busiest step has been. What
// one process has beside jobs (code, gRPC, its threads) is not among them.
std::vector<MemoryPart> EstimateServer(const ServerLoad& load);

// What the connections of the workers take in a process of its own (none are between objects of one
// process).
uint64_t EstimateConnections(const ServerLoad& load);

}  // namespace strata::server

#endif  // STRATA_SERVER_MEMORY_ESTIMATE_H_

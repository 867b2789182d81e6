// What a job asks of one of its servers, as far as memory is concerned: what estimates go by.
// Tested by tests/server/dram_estimate_test.cc
#ifndef STRATA_SERVER_SERVER_LOAD_H_
#define STRATA_SERVER_SERVER_LOAD_H_

#include <cstdint>
#include <vector>

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

// Of one hashed table.
TableKeys KeysOf(const ServerLoad& load, const TableSpec& table);

// Of a dense table, on all servers.
uint64_t DenseRowsOf(const TableSpec& table);

// Rows of one server's share of a table.
uint64_t RowsHere(const ServerLoad& load, const TableSpec& table);

}  // namespace strata::server

#endif  // STRATA_SERVER_SERVER_LOAD_H_

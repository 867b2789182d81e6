// What of spec.storage.dramBytesPerServer can be judged before the input is indexed and shards are
// placed. Pure functions.
#ifndef STRATA_PROTO_JOB_DRAM_LIMIT_H_
#define STRATA_PROTO_JOB_DRAM_LIMIT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "proto/core/table_spec.h"
#include "proto/strata/job.pb.h"

namespace strata {

// Bytes of a row as it lies in every tier and file (storage/row/layout.h): weights, optimizer state
// and score, 8 bytes of metadata.
uint64_t RowBytes(const TableSpec& table);

// Bytes of memory below which no server admits a table under a limit, in one shard: 16 rows of
// weights, optimizer state, 8 bytes of metadata and a position of 8, and two pages. (Servers count
// their index and a few bytes a row beside it: storage/dram/store.h.)
uint64_t LeastTableBytes(const TableSpec& table);

// Of a job with its defaults resolved. INVALID_ARGUMENT when every server would refuse the limit,
// whatever the input holds: it is below shards x the sum of LeastTableBytes over the hashed tables,
// where shards = spec.storage.shardsPerServer, by default at least 4, and at most the partitions of
// a server. The text names the limit, that product and what to change. What depends on the dense
// layers is judged when servers open the job.
absl::Status CheckDramLimit(const JobSpec& spec);

}  // namespace strata

#endif  // STRATA_PROTO_JOB_DRAM_LIMIT_H_

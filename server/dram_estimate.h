// What of a job's rows will lie in DRAM under spec.storage.dramBytesPerServer, by table, and which
// spec.tables[].dramShare would keep more of them there.
#ifndef STRATA_SERVER_DRAM_ESTIMATE_H_
#define STRATA_SERVER_DRAM_ESTIMATE_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "server/server_load.h"

namespace strata::server {

// A table on one server, all its shards there together. Bytes.
struct TableInDram {
  uint64_t part = 0;    // of dramBytesPerServer (proto/core/dram_parts.h); without a limit `needed`
  uint64_t needed = 0;  // by all its rows, with their index

  uint64_t in_dram() const { return std::min(part, needed); }
};

// By table. Shards have more or fewer rows than on average, as keys are hashed: where several
// tables share a limit, that is counted, to four deviations.
std::vector<TableInDram> TablesInDram(const ServerLoad& load);

// By table, dense ones 0: a dramShare for each, by which tables that need less than the others have
// what they need, and the others, whose rows do not all fit, equal parts of the rest. Empty where
// that keeps less than a hundredth of the limit more in DRAM than there is now.
std::vector<uint32_t> FittingShares(const ServerLoad& load);

}  // namespace strata::server

#endif  // STRATA_SERVER_DRAM_ESTIMATE_H_

// How the DRAM limit of a server, or of one of its shards, is divided over a job's tables. Pure:
// servers admit and make tables by it, and estimates, placement and checks count by it.
#ifndef STRATA_PROTO_CORE_DRAM_PARTS_H_
#define STRATA_PROTO_CORE_DRAM_PARTS_H_

#include <cstdint>
#include <vector>

#include "proto/core/table_spec.h"

namespace strata {

// What one table wants of a limit, bytes.
struct DramClaim {
  uint64_t whole = 0;  // dense: all its rows
  uint64_t least = 0;  // hashed: below which it is not admitted
};

// The part of each table in `bytes`; `claims` are by table. A dense table has all that it wants, up
// to half of `bytes` over the dense tables. Hashed tables share the rest by dram_share, and none
// has less than its least: where its share is worth less, the others share what it leaves. Where
// the rest is below all leasts together, they share it in proportion to these, and each has too
// little. Divisions round down, so that less than a byte a table is nobody's. More bytes make no
// part smaller. REQUIRES: dram_share >= 1.
std::vector<uint64_t> DivideDram(const std::vector<TableSpec>& tables,
                                 const std::vector<DramClaim>& claims, uint64_t bytes);

}  // namespace strata

#endif  // STRATA_PROTO_CORE_DRAM_PARTS_H_

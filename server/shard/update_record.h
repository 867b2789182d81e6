// What a shard writes to the update log: one record per committed step (bsp) or applied window
// (async), atomic over the shard. The log's own header carries the identity (kind below; step or
// applied-record number, task, window, examples); the payload carries the sums, little-endian:
//   u32 tables | u32 0, then per table that has rows, ascending:
//   u32 table | u32 dim | u64 rows | positions (rows, 8) | sums (rows, dim, 4).
#ifndef STRATA_SERVER_SHARD_UPDATE_RECORD_H_
#define STRATA_SERVER_SHARD_UPDATE_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/core/ids.h"
#include "server/table/sums.h"

namespace strata::server {

// LogHeader::kind.
enum class RecordKind : uint16_t {
  kStep = 1,    // bsp: root sums of step `step`
  kWindow = 2,  // async: (task, window), applied as record number `step`
  kCut = 3,     // async: the cut whose number is in `window` was taken; no tables
};

// The payload as pieces to be written one after the other. They point into `tables` (no sum is
// copied) and into `head_storage`, which both must outlive them. tables[t] is that of table t,
// dims[t] its floats per row.
std::vector<std::span<const uint8_t>> EncodeTables(std::span<const TableSums> tables,
                                                   std::span<const uint32_t> dims,
                                                   std::string& head_storage);

// The sums of a payload, by table. With `owner`, which keeps the payload alive, tables that lie
// there as a machine reads them (positions at a multiple of 8) stay there; others are copied out of
// it. DATA_LOSS names what is wrong and where.
absl::StatusOr<std::vector<TableSums>> ParseTables(std::span<const uint8_t> payload,
                                                   std::span<const uint32_t> dims,
                                                   const std::shared_ptr<const void>& owner = {});

}  // namespace strata::server

#endif  // STRATA_SERVER_SHARD_UPDATE_RECORD_H_

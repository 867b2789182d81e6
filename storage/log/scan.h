// What lies in the bytes of a segment of the update log. Pure: no files.
#ifndef STRATA_STORAGE_LOG_SCAN_H_
#define STRATA_STORAGE_LOG_SCAN_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/log/format.h"
#include "storage/log/record.h"

namespace strata::storage::log {

// Whether a record's payload is to be checked and visited; by its header, which is checked always.
using RecordFilter = std::function<bool(const LogHeader&)>;
using RecordVisitor = std::function<absl::Status(const LogRecordView&)>;

// Calls `visit` for the records of a segment from its start on, of those that `wanted` takes (null:
// all). Returns the offset behind the last one that is whole, which is bytes.size() when all are.
// REQUIRES: the segment's header is whole.
absl::StatusOr<uint64_t> VisitRecords(const SegmentHeader& header, std::span<const uint8_t> bytes,
                                      const RecordFilter& wanted, const RecordVisitor& visit);

// What a process that opens the log finds in its last segment.
struct TailScan {
  std::optional<SegmentHeader> header;  // nothing: cut off, or damaged
  uint64_t end = 0;                     // behind the last whole record; 0 without a header
  uint64_t torn_bytes = 0;  // behind `end`, of a write that was cut off; 0 for mere zeros
  // Where a record lies behind `end` that was written after everything up to `end` and beyond had
  // been acknowledged: no torn tail, acknowledged records are lost.
  std::optional<uint64_t> intact;
};
TailScan ScanTail(uint64_t segment, std::span<const uint8_t> bytes);

}  // namespace strata::storage::log

#endif  // STRATA_STORAGE_LOG_SCAN_H_

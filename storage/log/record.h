// Records of the update log, as its users see them.
// Tested by tests/storage/log/scan_test.cc
// Tested by tests/storage/log/segment_writer_test.cc
#ifndef STRATA_STORAGE_LOG_RECORD_H_
#define STRATA_STORAGE_LOG_RECORD_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <span>

#include "proto/core/ids.h"
#include "proto/core/partition.h"
#include "proto/core/uid.h"

namespace strata::storage {

// Whose log it is.
struct LogOwner {
  JobIdentity identity;
  Generation generation;
  friend bool operator==(const LogOwner&, const LogOwner&) = default;
};

// What the writer of a record says about it. The log stores it and does not interpret it; a caller
// that replays skips entries with step <= its clock.
struct LogHeader {
  uint16_t kind = 0;  // the caller's own numbering
  JobId job;
  ShardId shard;
  Generation generation;
  Step step;  // bsp: step; async: applied-record number
  PartitionRange partitions;
  MapEpoch map_epoch;
  // Identity of the work, for deduplication after replay.
  TaskId task;
  uint64_t window = 0;
  LaneId lane;
  uint64_t examples = 0;
  // Which job that is, whatever its number. Records of a log all have the log's own.
  JobUid uid;
  // Reserved for replication, 0 before: version of the shard's chain, and the scheduler's term.
  uint64_t chain_epoch = 0;
  uint64_t term = 0;

  friend bool operator==(const LogHeader&, const LogHeader&) = default;
};

// Where a record lies.
struct LogPosition {
  uint64_t segment = 0;
  uint64_t offset = 0;  // bytes from the segment file's start
  friend auto operator<=>(const LogPosition&, const LogPosition&) = default;
};

// A record to append: payload = the parts in order. The parts are read during Append only.
struct LogEntry {
  LogHeader header;
  std::span<const std::span<const uint8_t>> parts;
  // What the payload's CRC32C has to be; nothing: nobody knows. The log sums what it writes anyway,
  // so who was told a sum need not make one of his own.
  std::optional<uint32_t> crc32c = std::nullopt;
  // Gets the payload's CRC32C where the entry goes into the log; null: nobody wants it.
  uint32_t* summed = nullptr;
};

// A record being replayed; valid during the visit. The payload lies in mapped memory at an address
// that is a multiple of 8.
struct LogRecordView {
  LogPosition at;
  LogHeader header;
  std::span<const uint8_t> payload;
};

}  // namespace strata::storage

#endif  // STRATA_STORAGE_LOG_RECORD_H_

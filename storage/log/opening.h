// What Open of the update log finds in its folder: the segments, checked, and the end to go on at.
// Tested by tests/storage/log/update_log_test.cc
#ifndef STRATA_STORAGE_LOG_OPENING_H_
#define STRATA_STORAGE_LOG_OPENING_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/log/format.h"
#include "storage/log/segment_loader.h"
#include "storage/log/segment_writer.h"
#include "storage/log/update_log.h"

namespace strata::storage {

std::string SegmentPath(const std::string& directory, uint64_t segment);

struct LogTail {
  std::map<uint64_t, uint64_t> sizes;  // segment to the bytes of it that count; empty: a new log
  log::SegmentHeader header;           // of the last segment
  SegmentWriter writer;                // behind its last record
  uint64_t torn_bytes = 0;             // that were cut off there
};

// 1 holds every segment against its neighbours (CheckChain); 2 cuts a torn tail off the last one
// (RecoverLast) and, at kSynced, makes durable what is left: what is replayed from here on counts
// as acknowledged. Errors as of UpdateLog::Open.
absl::StatusOr<LogTail> OpenSegments(const UpdateLogOptions& options, SegmentLoader& loader);

// Writes the header that begins a segment.
absl::Status AppendSegmentHeader(SegmentWriter& writer, const log::SegmentHeader& header);

}  // namespace strata::storage

#endif  // STRATA_STORAGE_LOG_OPENING_H_

// The append-only log of a server: what was committed, before it is applied. One folder, locked
// exclusively; segments of bounded bytes; FORMAT.md gives every byte.
//
// Durability: Append returns when the operating system has the bytes (`logged`: survives kill -9 of
// this process). A server whose jobs are all at level `memory` has no log.
//
// Damage: a last segment that ends in a record that was cut off or does not check is a torn tail:
// Open cuts it off there and reports the bytes. If an intact record follows the damaged one (in the
// same segment or in a later one), acknowledged records were lost: DATA_LOSS names file and offset.
#ifndef STRATA_STORAGE_UPDATE_LOG_H_
#define STRATA_STORAGE_UPDATE_LOG_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/log_record.h"

namespace strata::storage {

struct UpdateLogOptions {
  std::string directory;  // of this log alone; made if missing
  // A segment takes no further record at this size; a single record may be larger.
  uint64_t segment_bytes = uint64_t{64} << 20;
  // A segment is written around the page cache where the appends to the one before were at least
  // this long on average (segment_writer.h); 0: always.
  uint64_t direct_from_bytes = uint64_t{256} << 10;
};

struct LogStats {
  uint64_t first_segment = 0;    // oldest that exists
  uint64_t last_segment = 0;     // being appended to
  uint64_t bytes = 0;            // of all segments
  uint64_t records = 0;          // appended since Open
  uint64_t truncated_bytes = 0;  // torn tail cut off by Open
};

// Thread-safe.
class UpdateLog {
 public:
  // Largest payload of one record.
  static constexpr uint64_t kMaxPayloadBytes = uint64_t{1} << 31;

  virtual ~UpdateLog() = default;

  // FAILED_PRECONDITION if another process holds the folder; DATA_LOSS (see above), which names
  // file and offset; RESOURCE_EXHAUSTED, PERMISSION_DENIED, NOT_FOUND from the file system.
  static absl::StatusOr<std::unique_ptr<UpdateLog>> Open(const UpdateLogOptions& options);

  // Appends the entries in order, in one write; each is a record of its own. Returns the place of
  // the first. On error none of them is in the log and later appends may succeed:
  // RESOURCE_EXHAUSTED (disk full), UNAVAILABLE (the disk failed), INVALID_ARGUMENT (payload over
  // the limit, or no entry).
  virtual absl::StatusOr<LogPosition> Append(std::span<const LogEntry> entries) = 0;
  absl::StatusOr<LogPosition> Append(const LogEntry& entry) { return Append({&entry, 1}); }

  // Calls `visit` for every record of segments >= from_segment that was there when the call began,
  // in the order of appending. OUT_OF_RANGE if from_segment was trimmed; DATA_LOSS as above; else
  // the first error of `visit`, which stops the replay. Use 0 for everything that is left.
  using Visitor = std::function<absl::Status(const LogRecordView&)>;
  virtual absl::Status Replay(uint64_t from_segment, const Visitor& visit) = 0;

  // Ends the current segment (if it has a record) and returns the number of the one that the next
  // record goes to: what a base image notes before it starts.
  virtual absl::StatusOr<uint64_t> Rotate() = 0;

  // Deletes whole segments < before_segment; never the current one.
  virtual absl::Status Trim(uint64_t before_segment) = 0;

  virtual LogStats stats() const = 0;
};

}  // namespace strata::storage

#endif  // STRATA_STORAGE_UPDATE_LOG_H_

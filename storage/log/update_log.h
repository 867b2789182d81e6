// The append-only log of a server: what was committed, before it is applied. One folder, locked
// exclusively; segments of bounded bytes; FORMAT.md gives every byte.
//
// Group commit: appends that arrive while one is being written go in the next write together, at
// most kGroupBytes and the first of them. What an append can do alone (checksums, copies) is done
// before it waits.
//
// Durability: Append returns when the operating system has the bytes (kLogged: they survive kill -9
// of this process) or when the device has them (kSynced: the power may fail). A server whose jobs
// are all at level `memory` has no log.
//
// A sync that fails is not repeated: nobody knows what it lost. The segment is given up behind what
// was acknowledged before, and what was not goes to a new one; where that fails too, the append
// does, and the next begins a new segment again. What an append that failed had written may be
// found by Open if the process ends before another append went through: who repeats an append after
// an error must accept that, as after a call whose answer was lost.
//
// Damage: a last segment that ends in a record that was cut off or does not check is a torn tail:
// Open cuts it off there and reports the bytes. If an intact record that was written after the
// damaged one had been acknowledged follows (in the same segment or in a later one), acknowledged
// records were lost: DATA_LOSS names file and offset.
#ifndef STRATA_STORAGE_LOG_UPDATE_LOG_H_
#define STRATA_STORAGE_LOG_UPDATE_LOG_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/runtime/files/file_system.h"
#include "storage/log/record.h"

namespace strata::storage {

enum class LogDurability : uint8_t { kLogged, kSynced };

struct UpdateLogOptions {
  std::string directory;  // of this log alone; made if missing
  // Whose log it is: in the header of every segment. A log of somebody else is not opened.
  LogOwner owner = {};
  LogDurability durability = LogDurability::kLogged;
  // A segment takes no further record at this size; a single record may be larger.
  uint64_t segment_bytes = uint64_t{64} << 20;
  // A segment is written around the page cache where the appends to the one before were at least
  // this long on average (segment_writer.h); 0: always.
  uint64_t direct_from_bytes = uint64_t{256} << 10;
  FileSystem* files = &FileSystem::Kernel();  // outlives the log
};

struct LogStats {
  uint64_t first_segment = 0;    // oldest that exists
  uint64_t last_segment = 0;     // being appended to
  uint64_t bytes = 0;            // of all segments
  uint64_t records = 0;          // appended since Open
  uint64_t appended_bytes = 0;   // since Open, with headers and zeros
  uint64_t writes = 0;           // groups they went in
  uint64_t given_up = 0;         // segments whose sync failed, since Open
  uint64_t truncated_bytes = 0;  // torn tail cut off by Open
};

// Thread-safe.
class UpdateLog {
 public:
  // Largest payload of one record.
  static constexpr uint64_t kMaxPayloadBytes = uint64_t{1} << 31;
  // Of the appends that join a write.
  static constexpr uint64_t kGroupBytes = uint64_t{8} << 20;

  virtual ~UpdateLog() = default;

  // FAILED_PRECONDITION if another process holds the folder, or the log is another owner's (the
  // text names both); UNIMPLEMENTED if an older version wrote it; DATA_LOSS (see above), which
  // names file and offset; RESOURCE_EXHAUSTED, PERMISSION_DENIED, NOT_FOUND from the file system.
  static absl::StatusOr<std::unique_ptr<UpdateLog>> Open(const UpdateLogOptions& options);

  // Appends the entries in order, in one write; each is a record of its own. Returns the place of
  // the first. On error none of them is in the log (but see above) and later appends may succeed:
  // RESOURCE_EXHAUSTED (disk full, too many open files), UNAVAILABLE (the disk failed),
  // INVALID_ARGUMENT (payload over the limit, or no entry), DATA_LOSS (a payload that does not sum
  // up to what its entry says: none is in the log). NOT_FOUND: somebody removed the folder
  // or the segment that is appended to, and with it what was acknowledged; no later append
  // succeeds.
  virtual absl::StatusOr<LogPosition> Append(std::span<const LogEntry> entries) = 0;
  absl::StatusOr<LogPosition> Append(const LogEntry& entry) { return Append({&entry, 1}); }

  // Calls `visit` for every record of segments >= from_segment that was there when the call began
  // and that `wanted` takes by its header (null: all), in the order of appending. OUT_OF_RANGE if
  // from_segment was trimmed; DATA_LOSS as above, for any header and for the payloads of records
  // that are wanted; else the first error of `visit`, which stops the replay. Use 0 for everything
  // that is left. Several threads may replay at a time, each the records of its shards.
  using Filter = std::function<bool(const LogHeader&)>;
  using Visitor = std::function<absl::Status(const LogRecordView&)>;
  virtual absl::Status Replay(uint64_t from_segment, const Filter& wanted,
                              const Visitor& visit) = 0;
  absl::Status Replay(uint64_t from_segment, const Visitor& visit) {
    return Replay(from_segment, nullptr, visit);
  }

  // Calls `take` for every such record from `from` on (offset 0: the segment's first one; segment
  // 0: the oldest), until it returns false, and returns the place behind the last record that was
  // passed, from which a later call goes on. Reads in large pieces. Errors are Replay's; one of
  // `take` ends it as well.
  using Taker = std::function<absl::StatusOr<bool>(const LogRecordView&)>;
  virtual absl::StatusOr<LogPosition> ReadOn(LogPosition from, const Filter& wanted,
                                             const Taker& take) = 0;

  // Ends the current segment (if it has a record) and returns the number of the one that the next
  // record goes to: what a base image notes before it starts.
  virtual absl::StatusOr<uint64_t> Rotate() = 0;

  // Deletes whole segments < before_segment; never the current one.
  virtual absl::Status Trim(uint64_t before_segment) = 0;

  virtual LogStats stats() const = 0;
  // Bytes of segments >= segment.
  virtual uint64_t BytesFrom(uint64_t segment) const = 0;
};

}  // namespace strata::storage

#endif  // STRATA_STORAGE_LOG_UPDATE_LOG_H_

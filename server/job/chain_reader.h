// What is read of a shard's log for the copy after this one, and from which segment on.
#ifndef STRATA_SERVER_JOB_CHAIN_READER_H_
#define STRATA_SERVER_JOB_CHAIN_READER_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/core/ids.h"
#include "server/job/chain_entries.h"
#include "server/protocol/replica_chain.h"
#include "storage/log/record.h"
#include "storage/log/update_log.h"

namespace strata::server {

// In which segments of the log a shard's entries lie. One note a segment. One thread at a time.
class ChainSegments {
 public:
  // `before`: where the shard's log ended when an entry went to `segment`.
  void Appended(LogEnd before, uint64_t segment);
  // All entries after `end` lie there or later; 0: anywhere, it is older than all notes.
  uint64_t From(LogEnd end) const;
  // Segments before it are gone.
  void Trimmed(uint64_t first_segment);

 private:
  struct Note {
    LogEnd before;
    uint64_t segment = 0;
  };
  std::deque<Note> notes_;  // in order
};

// Reads on where it stopped, so that a log is read once however long it is and however often
// somebody asks. One thread at a time; reads files.
class ChainReader {
 public:
  // Entries of the shard after `after`, in order, up to the one at `through` or until they have
  // `most_bytes` (one at least). `segment`: where to begin, if the last call did not end at
  // `after`. OUT_OF_RANGE: the log does not go on after `after`; what it held there is gone.
  absl::StatusOr<std::vector<ChainEntryPtr>> Read(storage::UpdateLog& log, ShardId shard,
                                                  uint64_t segment, LogEnd after, LogEnd through,
                                                  uint64_t most_bytes);

 private:
  storage::LogPosition place_;  // behind the entry that ends at end_
  LogEnd end_;
  bool placed_ = false;
};

}  // namespace strata::server

#endif  // STRATA_SERVER_JOB_CHAIN_READER_H_

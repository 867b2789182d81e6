// Entries of a shard's log that the copy after this one lacks: in memory what was just appended,
// read from the log what is older.
#ifndef STRATA_SERVER_JOB_CHAIN_ENTRIES_H_
#define STRATA_SERVER_JOB_CHAIN_ENTRIES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/core/ids.h"
#include "proto/wire/buffer.h"
#include "proto/wire/message.h"
#include "server/protocol/replica_chain.h"
#include "storage/log/record.h"
#include "storage/log/update_log.h"

namespace strata::server {

// As it is sent: a record's header as storage/FORMAT.md has it, for place 0, and its payload.
struct ChainEntry {
  LogEnd end;
  uint64_t segment = 0;  // of the log here
  Buffer bytes;          // header, then payload
  uint32_t crc32c = 0;

  wire::ForwardEntryView View(ShardId shard) const;
};
using ChainEntryPtr = std::shared_ptr<const ChainEntry>;

// Copies the payload once.
ChainEntryPtr MakeChainEntry(const storage::LogHeader& header, uint64_t segment, LogEnd end,
                             std::span<const std::span<const uint8_t>> parts);
// The record of an entry that arrived; points into it. DATA_LOSS: it does not check.
absl::StatusOr<storage::LogRecordView> RecordOf(const wire::ForwardEntryView& entry);

// Those of one shard after `after`, in order, up to `most_bytes` (one at least), of segments from
// `segment` on. OUT_OF_RANGE: the log does not reach back so far. Reads files.
absl::StatusOr<std::vector<ChainEntryPtr>> ReadChainEntries(storage::UpdateLog& log, ShardId shard,
                                                            uint64_t segment, LogEnd after,
                                                            LogEnd through, uint64_t most_bytes);

// A run of entries without a gap; the log may have others before and after it. One thread at a
// time.
class ChainEntries {
 public:
  explicit ChainEntries(LogEnd after) : after_(after) {}

  // `before`: where the log ended then. One that does not follow what is here is left to the log.
  void Add(LogEnd before, ChainEntryPtr entry);
  // What the other copy has goes.
  void Have(LogEnd end);
  // Forgets all; what comes next follows `after`.
  void Restart(LogEnd after);
  // Takes what was read after `after`: before what is here where it reaches that, else in its
  // place.
  void Take(LogEnd after, std::vector<ChainEntryPtr> entries);
  // Drops the oldest one.
  void DropFirst();

  // The entries after `end`, of which the log has some; nothing: the first of them is not here.
  std::optional<std::vector<ChainEntryPtr>> After(LogEnd end, uint64_t most_bytes) const;
  LogEnd after() const { return after_; }
  LogEnd through() const { return entries_.empty() ? after_ : entries_.back()->end; }
  bool empty() const { return entries_.empty(); }
  uint64_t bytes() const { return bytes_; }
  uint64_t BytesAfter(LogEnd end) const;
  // The log's first segment that has one of them; nothing: there is none.
  std::optional<uint64_t> first_segment() const;

 private:
  LogEnd after_;  // of the log's entries after it the first ones are here
  std::deque<ChainEntryPtr> entries_;
  uint64_t bytes_ = 0;
};

}  // namespace strata::server

#endif  // STRATA_SERVER_JOB_CHAIN_ENTRIES_H_

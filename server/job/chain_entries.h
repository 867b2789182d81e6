// Entries of a shard's log that the copy after this one lacks: the newest stay in memory, and of
// the older ones what was read from the log.
#ifndef STRATA_SERVER_JOB_CHAIN_ENTRIES_H_
#define STRATA_SERVER_JOB_CHAIN_ENTRIES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "proto/wire/forward_entry.h"
#include "server/protocol/replica_chain.h"
#include "storage/log/record.h"

namespace strata::server {

// As it is sent: a record's header as storage/FORMAT.md has it, for place 0, and its payload.
struct ChainEntry {
  LogEnd end;
  wire::ForwardEntryBytes sent;

  size_t size() const { return sent.bytes().size(); }
};
using ChainEntryPtr = std::shared_ptr<const ChainEntry>;

// Copies the payload once, and sums it up where the caller does not know its CRC32C.
ChainEntryPtr MakeChainEntry(const storage::LogHeader& header, LogEnd end,
                             std::span<const std::span<const uint8_t>> parts,
                             std::optional<uint32_t> crc32c = std::nullopt);

// Two runs of entries, each without a gap: the newest, up to the log's end, and those that were
// read, which lie before. One thread at a time.
class ChainEntries {
 public:
  explicit ChainEntries(LogEnd after) : read_(after), newest_(after) {}

  // `before`: where the log ended then. What the entry does not follow goes.
  void Add(LogEnd before, ChainEntryPtr entry);
  // Of the newest goes what every later copy has, of those that were read what the next one has.
  void Have(LogEnd committed, LogEnd end);
  // Forgets all; what comes next follows `after`.
  void Restart(LogEnd after);
  // Takes what was read after `after`: behind what was read before if it follows that, else in its
  // place.
  void Take(LogEnd after, std::vector<ChainEntryPtr> entries);
  // Drops the oldest of the newest: they are in the log.
  void DropFirst();

  // The entries after `end`, of which the log has some, so many at most and one at least; nothing:
  // the first of them is not here.
  std::optional<std::vector<ChainEntryPtr>> After(LogEnd end, uint64_t most_bytes,
                                                  size_t most) const;
  // Of the newest.
  LogEnd after() const { return newest_.after; }
  LogEnd through() const { return newest_.through(); }
  uint64_t bytes() const { return newest_.bytes(); }
  // Of those that were read: up to where, and how many bytes are here.
  LogEnd read_through() const { return read_.through(); }
  uint64_t read_bytes() const { return read_.bytes(); }
  // Bytes of what is here after `end`.
  uint64_t BytesAfter(LogEnd end) const;

 private:
  struct Item {
    ChainEntryPtr entry;
    uint64_t bytes = 0;  // of all that the run ever had, up to and with it
  };
  struct Run {
    explicit Run(LogEnd end) : after(end) {}
    LogEnd through() const { return items.empty() ? after : items.back().entry->end; }
    uint64_t bytes() const { return added - gone; }
    bool Has(LogEnd end) const { return after <= end && end < through(); }
    std::deque<Item>::const_iterator FirstAfter(LogEnd end) const;
    void Push(ChainEntryPtr entry);
    void PopFirst();
    void Have(LogEnd end);

    LogEnd after;  // of the log's entries after it the first ones are here
    std::deque<Item> items;
    uint64_t added = 0, gone = 0;
  };

  Run read_;
  Run newest_;
};

}  // namespace strata::server

#endif  // STRATA_SERVER_JOB_CHAIN_ENTRIES_H_

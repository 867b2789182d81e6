// Records that are longer than a message, on their way to the next copy: in parts, one a call.
//
// A part is an entry (ForwardEntry) whose header is written for the place (0, offset of the part in
// the payload), and says how long the whole payload is. Parts of one record come in order.
#ifndef STRATA_SERVER_JOB_ENTRY_PARTS_H_
#define STRATA_SERVER_JOB_ENTRY_PARTS_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "proto/core/ids.h"
#include "proto/wire/buffer.h"
#include "proto/wire/message.h"
#include "server/job/chain_entries.h"
#include "storage/log/format.h"
#include "storage/log/record.h"

namespace strata::server {

// What is sent of an entry from `offset` of its payload on.
struct EntryPart {
  ChainEntryPtr entry;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  std::array<uint8_t, storage::log::kRecordHeaderBytes> header;

  // Up to `most_bytes`. Sums nothing up.
  static std::unique_ptr<EntryPart> From(ChainEntryPtr entry, uint64_t offset, uint64_t most_bytes);
  // Points into this. Sums the part up.
  wire::ForwardEntryView View(ShardId shard) const;
};

// Those of one shard, put together. Thread-safe.
class EntryParts {
 public:
  // Holds so many bytes of memory for as long as it lives; an error: there are not so many.
  using Memory = std::function<absl::StatusOr<std::shared_ptr<void>>(uint64_t bytes)>;
  explicit EntryParts(Memory memory) : memory_(std::move(memory)) {}

  // A record, and what holds its payload where that came in parts.
  struct Whole {
    storage::LogRecordView record;
    // What the payload has to sum up to, which who appends it checks; nothing: it was checked here.
    std::optional<uint32_t> crc32c;
    Buffer payload;
    std::shared_ptr<void> memory;
  };
  // Nothing: more of it is to come. DATA_LOSS: it does not check. FAILED_PRECONDITION: what comes
  // before it is missing: it is to be sent from its beginning. RESOURCE_EXHAUSTED.
  absl::StatusOr<std::optional<Whole>> Take(const wire::ForwardEntryView& entry);

 private:
  const Memory memory_;
  absl::Mutex mu_;
  std::optional<BufferBuilder> payload_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<void> held_ ABSL_GUARDED_BY(mu_);
  uint64_t received_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace strata::server

#endif  // STRATA_SERVER_JOB_ENTRY_PARTS_H_

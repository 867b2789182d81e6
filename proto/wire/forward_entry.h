// An entry of a ForwardRequest as it is sent, encoded once: the same bytes go with any message, and
// whoever receives them finds the payload where a machine can read it.
#ifndef STRATA_PROTO_WIRE_FORWARD_ENTRY_H_
#define STRATA_PROTO_WIRE_FORWARD_ENTRY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/core/ids.h"
#include "proto/wire/buffer.h"
#include "proto/wire/message.h"

namespace strata::wire {

// Immutable; any thread.
class ForwardEntryBytes {
 public:
  // In a message that begins at a multiple of this, the payload lies at one.
  static constexpr size_t kAlignment = 8;

  ForwardEntryBytes() = default;
  // Copies the header and the payload, which is the parts in order. `payload_crc32c`: the payload's
  // sum, where the caller knows it; else it is made while the payload is copied.
  static ForwardEntryBytes Encode(ShardId shard, std::span<const uint8_t> header,
                                  std::span<const std::span<const uint8_t>> parts,
                                  std::optional<uint32_t> payload_crc32c = std::nullopt);

  // Points into the bytes.
  ForwardEntryView view() const;
  // The whole field of the message. Their number is a multiple of kAlignment, where the shard's
  // number is below 2^21.
  const Buffer& bytes() const { return bytes_; }

 private:
  Buffer bytes_;
  ShardId shard_;
  size_t header_at_ = 0, header_bytes_ = 0, payload_at_ = 0, payload_bytes_ = 0;
  uint32_t crc32c_ = 0;
};

// What the payload of an entry has to sum up to, by its CRC32C, if its header is not damaged. Sums
// up the header alone.
uint32_t PayloadCrcOf(const ForwardEntryView& entry);

// The message as pieces to be sent one after the other, of which `entries` are the last: what they
// point into is shared and not copied. What `message` itself has is copied once.
// RESOURCE_EXHAUSTED over kMaxMessageBytes.
absl::StatusOr<std::vector<Buffer>> EncodeForwardPieces(const ForwardRequestView& message,
                                                        std::span<const Buffer> entries);

}  // namespace strata::wire

#endif  // STRATA_PROTO_WIRE_FORWARD_ENTRY_H_

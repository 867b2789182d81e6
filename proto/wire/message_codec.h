// Reads and writes the data plane's messages (proto/strata/data.proto) by hand, in plain protobuf
// encoding, so that keys and values are never copied by a protobuf object: a parsed message points
// into the received bytes, and an encoder hands out the place where values are to be written.
#ifndef STRATA_PROTO_WIRE_MESSAGE_CODEC_H_
#define STRATA_PROTO_WIRE_MESSAGE_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/core/ids.h"
#include "proto/core/lane_tree.h"
#include "proto/wire/buffer.h"
#include "proto/wire/message.h"

namespace strata::wire {

// Parsers. Views point into `bytes`, which must outlive them. As protobuf does: fields in any
// order, the last value of a scalar wins, repeated occurrences of an embedded message merge, packed
// and unpacked numbers, unknown fields skipped. Stricter than protobuf: a known field of another
// wire type, more than the bounds of message_limits.h, and a message over kMaxMessageBytes are
// errors. INVALID_ARGUMENT names the message, the byte offset and what is wrong. RESOURCE_EXHAUSTED
// names the bound. Groups are not checked here: see CheckRequestGroup. Pure; any thread.
absl::StatusOr<OpenSessionRequest> ParseOpenSessionRequest(std::span<const uint8_t> bytes);
absl::StatusOr<OpenSessionReply> ParseOpenSessionReply(std::span<const uint8_t> bytes);
absl::StatusOr<PullRequestView> ParsePullRequest(std::span<const uint8_t> bytes);
absl::StatusOr<PullReplyView> ParsePullReply(std::span<const uint8_t> bytes);
absl::StatusOr<PrefetchRequestView> ParsePrefetchRequest(std::span<const uint8_t> bytes);
absl::StatusOr<PrefetchReply> ParsePrefetchReply(std::span<const uint8_t> bytes);
absl::StatusOr<PushRequestView> ParsePushRequest(std::span<const uint8_t> bytes);
absl::StatusOr<PushReply> ParsePushReply(std::span<const uint8_t> bytes);
absl::StatusOr<MarkRequest> ParseMarkRequest(std::span<const uint8_t> bytes);
absl::StatusOr<MarkReply> ParseMarkReply(std::span<const uint8_t> bytes);
absl::StatusOr<ForwardRequestView> ParseForwardRequest(std::span<const uint8_t> bytes);
absl::StatusOr<ForwardReply> ParseForwardReply(std::span<const uint8_t> bytes);

Buffer EncodeOpenSessionRequest(const OpenSessionRequest& message);
Buffer EncodeOpenSessionReply(const OpenSessionReply& message);
Buffer EncodePrefetchReply(const PrefetchReply& message);
Buffer EncodePushReply(const PushReply& message);
Buffer EncodeMarkRequest(const MarkRequest& message);
Buffer EncodeMarkReply(const MarkReply& message);
// Copies headers, payloads and data once. RESOURCE_EXHAUSTED over kMaxMessageBytes.
absl::StatusOr<Buffer> EncodeForwardRequest(const ForwardRequestView& message);
Buffer EncodeForwardReply(const ForwardReply& message);
// Of an entry over its header, then its payload; of an image's part over its data.
uint32_t ForwardCrc(std::span<const uint8_t> header, std::span<const uint8_t> payload);

// The same request under another header (a resend after a change of map epoch or session): a copy
// with the new header appended, which by the merge rule replaces the old one, and the same values
// on a device.
// RESOURCE_EXHAUSTED when it no longer fits kMaxMessageBytes.
absl::StatusOr<Buffer> WithHeader(const Buffer& request, const Header& header);

struct KeyGroup {
  TableId table;
  ShardId shard;
  std::span<const Key> keys;  // strictly ascending by position
};

// A pull's fields that are rarely set.
struct PullExtras {
  bool want_ticket = false;
  PullCodecs codec = {};
  Ticket ticket = {};  // with one: no groups
};

// Copies the keys and computes the checksums. RESOURCE_EXHAUSTED over kMaxMessageBytes.
absl::StatusOr<Buffer> EncodePullRequest(const Header& header, Step step, uint32_t wait_ms,
                                         std::span<const ShardId> shards,
                                         std::span<const KeyGroup> groups,
                                         const PullExtras& extras = {});
absl::StatusOr<Buffer> EncodePrefetchRequest(const Header& header, Step step,
                                             std::span<const ShardId> shards,
                                             std::span<const KeyGroup> groups);
// Ticket::fingerprint of these groups.
uint32_t FingerprintOf(std::span<const KeyGroup> groups);

// Groups being written in place, shared by the two encoders below.
class GroupWriter {
 public:
  size_t groups() const { return places_.size(); }

  // All bytes of group i's values.
  std::span<uint8_t> bytes(size_t i);
  // The same where they are floats: keys * dim, uninitialised, aligned for float and for
  // nothing more. Different groups may be written by different threads at once.
  std::span<float> values(size_t i);

  // Computes group i's checksum; nothing of it may be written afterwards. Different groups may be
  // sealed by different threads. Optional: Finish seals what is not sealed.
  void Seal(size_t i);

 protected:
  struct Place {
    uint32_t keys_crc = 0;
    size_t values_at = 0;  // offsets in the message
    size_t value_bytes = 0;
    size_t crc_at = 0;
    bool sealed = false;
  };

  explicit GroupWriter(BufferBuilder out) : out_(std::move(out)) {}
  void AddGroup(uint8_t*& at, uint32_t field, TableId table, ShardId shard,
                std::span<const Key> keys, size_t value_bytes, uint32_t keys_crc);
  void SealAll();

  BufferBuilder out_;
  size_t used_ = 0;
  std::vector<Place> places_;
};

struct ValueGroup {
  TableId table;
  ShardId shard;
  size_t keys = 0;
  uint32_t dim = 0;  // floats per key; 0: its values go by a device's memory (device_values.h)
  ValueCodec codec = ValueCodec::kFloat32;
};

// A reply of Pull:
//   auto reply = PullReplyEncoder::Make(groups);
//   gather rows into reply->values(i), reply->Seal(i)     (any threads, one per group)
//   Buffer bytes = reply->Finish(state, PullOutcome::kServed);
// For the outcomes without values: Make({}).
class PullReplyEncoder : public GroupWriter {
 public:
  // INVALID_ARGUMENT over the bounds of message_limits.h: whoever asked must name fewer shards, and
  // would ask for ever if it were told to try again. RESOURCE_EXHAUSTED without memory.
  static absl::StatusOr<PullReplyEncoder> Make(std::span<const ValueGroup> groups);

  // Call once, after all writers are done. The encoder is empty afterwards.
  Buffer Finish(const ServerState& state, PullOutcome outcome, const Ticket& ticket = {});

 private:
  using GroupWriter::GroupWriter;
};

struct PushGroup {
  TableId table;
  ShardId shard;
  std::span<const Key> keys;  // strictly ascending by position; copied by Make
  uint32_t dim = 0;           // floats per key; 0 as above
};

struct PushContribution {
  LaneNode node;
  uint64_t examples = 0;
  std::vector<PushGroup> groups;  // may be empty
  Ticket ticket;                  // names the groups' keys: they are not sent, only checksummed
};

// A request of Push. Groups are numbered over all contributions, in order.
class PushRequestEncoder : public GroupWriter {
 public:
  // RESOURCE_EXHAUSTED over kMaxMessageBytes: the caller splits by shards (message_limits.h has the
  // sizes to plan with).
  static absl::StatusOr<PushRequestEncoder> Make(std::span<const ShardId> shards,
                                                 std::span<const PushContribution> contributions);

  // Call once, after all writers are done. The encoder is empty afterwards.
  Buffer Finish(const PushFields& fields);

 private:
  using GroupWriter::GroupWriter;
};

}  // namespace strata::wire

#endif  // STRATA_PROTO_WIRE_MESSAGE_CODEC_H_

// Bounds of the data plane's messages, the same on both ends.
// Tested by tests/proto/wire/message_refusal_test.cc
#ifndef STRATA_PROTO_WIRE_MESSAGE_LIMITS_H_
#define STRATA_PROTO_WIRE_MESSAGE_LIMITS_H_

#include <cstddef>

namespace strata {

// Largest message either way; set on both ends of every transport.
inline constexpr size_t kMaxMessageBytes = size_t{64} << 20;

}  // namespace strata

namespace strata::wire {

// Repeated fields of one message. A parser's memory is bounded by
//   kMaxGroups * sizeof(GroupView) + kMaxShards * 4 + kMaxContributions * sizeof(ContributionView),
// about 30 MB beside the message's own bytes; without these bounds a message of two-byte groups
// would need thirty times its size.
inline constexpr size_t kMaxGroups = size_t{1} << 18;
inline constexpr size_t kMaxShards = size_t{1} << 20;  // = Partitioning::kMaxPartitions
inline constexpr size_t kMaxContributions = size_t{1} << 14;
inline constexpr size_t kMaxCodecs = size_t{1} << 14;  // of a pull, by table

inline constexpr size_t kMaxForwarded = size_t{1} << 16;  // entries of a Forward, and images

// Unknown groups (wire type 3) inside each other that a parser skips before it refuses.
inline constexpr int kMaxUnknownDepth = 32;

// Bytes that a group takes at most: `keys` keys and `floats` values in all.
constexpr size_t MaxGroupBytes(size_t keys, size_t floats) {
  // Tag and length of the group (1 + 5), table (1 + 5), keys (1 + 5), shard (1 + 8, padded so that
  // values are aligned), values (1 + 5), checksum (1 + 4).
  return 38 + keys * 8 + floats * 4;
}
// Bytes of a contribution beside its groups, of a shard's number, and of all scalar fields of any
// message, at most.
inline constexpr size_t kMaxTicketBytes = 38;
inline constexpr size_t kMaxContributionBytes = 6 + 6 + 6 + 11 + kMaxTicketBytes;
inline constexpr size_t kMaxShardNumberBytes = 5;
inline constexpr size_t kMaxFixedBytes = 200;
// Of an entry or an image's part of a Forward beside its bytes, at most; and an end of its reply.
inline constexpr size_t kMaxForwardBytes = 64;
inline constexpr size_t kMaxForwardEndBytes = 80;
inline constexpr size_t kMaxEnumBytes = 1 + 10;  // a negative number of one, with its tag

}  // namespace strata::wire

#endif  // STRATA_PROTO_WIRE_MESSAGE_LIMITS_H_

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/core/checksum.h"
#include "proto/wire/format.h"
#include "proto/wire/header_codec.h"
#include "proto/wire/message_codec.h"
#include "proto/wire/message_limits.h"

namespace strata::wire {
namespace {

// Nothing for no ticket.
uint8_t* WriteTicket(uint8_t* at, uint32_t field, const Ticket& t) {
  if (t == Ticket()) return at;
  at = WriteTag(at, field, kLength);
  uint8_t* const length = at++;
  at = WriteFixed(at, 1, t.incarnation);
  at = WriteNumber(at, 2, t.number);
  at = WriteNumber(at, 3, t.keys);
  at = WriteFixed(at, 4, t.fingerprint);
  *length = static_cast<uint8_t>(at - length - 1);  // <= 36
  return at;
}

uint8_t* WriteShards(uint8_t* at, uint32_t field, std::span<const ShardId> shards) {
  if (shards.empty()) return at;
  size_t bytes = 0;
  for (const ShardId s : shards) bytes += VarintBytes(s.value);
  at = WriteTag(at, field, kLength);
  at = WriteVarint(at, bytes, VarintBytes(bytes));
  for (const ShardId s : shards) at = WriteVarint(at, s.value, VarintBytes(s.value));
  return at;
}

// A message within a message whose length is known only after it is written.
class Embedded {
 public:
  // `most` bounds the length.
  Embedded(uint8_t*& at, uint32_t field, size_t most)
      : at_(at), length_(WriteTag(at, field, kLength)), width_(VarintBytes(most)) {
    at_ = length_ + width_;
  }
  void Close() { WriteVarint(length_, static_cast<uint64_t>(at_ - length_) - width_, width_); }

 private:
  uint8_t*& at_;
  uint8_t* const length_;
  const size_t width_;
};

struct GroupPlace {
  uint8_t* values;
  uint8_t* crc;
};

// Everything of a group but its values and checksum. Keys come before the shard, whose number is
// padded so that the values start at a multiple of 4 bytes from `base`, which is 64-byte aligned.
GroupPlace WriteGroup(const uint8_t* base, uint8_t*& at, uint32_t field, TableId table,
                      ShardId shard, std::span<const Key> keys, size_t value_bytes) {
  GroupPlace place{};
  Embedded group(at, field, MaxGroupBytes(keys.size(), (value_bytes + 3) / 4));
  at = WriteNumber(at, 1, table.value);
  if (!keys.empty()) {
    at = WriteTag(at, 3, kLength);
    at = WriteVarint(at, keys.size_bytes(), VarintBytes(keys.size_bytes()));
    std::memcpy(at, keys.data(), keys.size_bytes());
    at += keys.size_bytes();
  }
  at = WriteTag(at, 2, kVarint);
  size_t width = VarintBytes(shard.value);
  const size_t values_header = 1 + VarintBytes(value_bytes);
  if (value_bytes != 0) {
    const size_t unpadded = static_cast<size_t>(at - base) + width + values_header;
    width += (4 - unpadded % 4) % 4;
  }
  at = WriteVarint(at, shard.value, width);
  if (value_bytes != 0) {
    at = WriteTag(at, 4, kLength);
    at = WriteVarint(at, value_bytes, VarintBytes(value_bytes));
    place.values = at;
    at += value_bytes;
  }
  place.crc = WriteTag(at, 5, kFixed32);
  at = place.crc + 4;
  group.Close();
  return place;
}

absl::Status TooLarge(const char* name, size_t bytes) {
  return absl::ResourceExhaustedError(absl::StrCat(
      name, " of ", bytes, " bytes or more, the limit of a message is ", kMaxMessageBytes));
}

// Adds what a group takes at most to `total`; false when that passes the limit of a message.
// `value_bytes`: of one key.
bool AddGroupBytes(size_t keys, size_t key_bytes, uint64_t value_bytes, size_t& total) {
  // Checked before they are multiplied: neither product below can overflow then.
  if (keys > kMaxMessageBytes || value_bytes > 4 * kMaxMessageBytes) return false;
  total += MaxGroupBytes(0, 0) + key_bytes + keys * value_bytes;
  return total <= kMaxMessageBytes;
}

// An encoder refuses what a parser would.
absl::Status CheckCount(const char* name, const char* what, size_t count, size_t limit) {
  if (count <= limit) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(name, " of ", count, " ", what, ", the limit is ", limit));
}

constexpr size_t ShardsBytes(size_t shards) { return 6 + shards * kMaxShardNumberBytes; }

}  // namespace

Buffer EncodeOpenSessionRequest(const OpenSessionRequest& message) {
  BufferBuilder out(kMaxFixedBytes + message.cluster_id.size() + message.job_uid.size());
  uint8_t* at = WriteHeader(out.data(), message.header);
  at = WriteText(at, 2, message.cluster_id);
  at = WriteText(at, 3, message.job_uid);
  return out.Finish(static_cast<size_t>(at - out.data()));
}

Buffer EncodeOpenSessionReply(const OpenSessionReply& message) {
  BufferBuilder out(kMaxFixedBytes);
  return out.Finish(static_cast<size_t>(WriteState(out.data(), message.state) - out.data()));
}

Buffer EncodePrefetchReply(const PrefetchReply& message) {
  BufferBuilder out(kMaxFixedBytes);
  uint8_t* at = WriteState(out.data(), message.state);
  at = WriteTicket(at, 2, message.ticket);
  return out.Finish(static_cast<size_t>(at - out.data()));
}

Buffer EncodePushReply(const PushReply& message) {
  BufferBuilder out(kMaxFixedBytes);
  uint8_t* at = WriteState(out.data(), message.state);
  at = WriteNumber(at, 2, message.repeated ? 1 : 0);
  return out.Finish(static_cast<size_t>(at - out.data()));
}

Buffer EncodeMarkRequest(const MarkRequest& message) {
  BufferBuilder out(kMaxFixedBytes);
  uint8_t* at = WriteHeader(out.data(), message.header);
  at = WriteNumber(at, 2, message.sequence.value);
  at = WriteNumber(at, 3, message.lane.value);
  at = WriteNumber(at, 4, message.cut);
  at = WriteNumber(at, 5, message.task.value);
  at = WriteNumber(at, 6, message.window);
  return out.Finish(static_cast<size_t>(at - out.data()));
}

Buffer EncodeMarkReply(const MarkReply& message) {
  BufferBuilder out(kMaxFixedBytes);
  return out.Finish(static_cast<size_t>(WriteState(out.data(), message.state) - out.data()));
}

absl::StatusOr<Buffer> WithHeader(const Buffer& request, const Header& header) {
  BufferBuilder out(request.size() + kMaxFixedBytes);
  if (request.size() != 0) std::memcpy(out.data(), request.data(), request.size());
  const uint8_t* const end = WriteHeader(out.data() + request.size(), header);
  const auto used = static_cast<size_t>(end - out.data());
  if (used > kMaxMessageBytes) return TooLarge("request", used);
  return out.Finish(used).With(request.device_values());
}

namespace {

uint32_t CrcOf(std::span<const Key> keys) {
  return Crc32c({reinterpret_cast<const uint8_t*>(keys.data()), keys.size_bytes()});
}

// An upper bound of a request's bytes. Errors as EncodePullRequest's.
absl::StatusOr<size_t> KeyRequestBytes(const char* name, std::span<const ShardId> shards,
                                       std::span<const KeyGroup> groups, size_t codecs = 0) {
  absl::Status counts = CheckCount(name, "shards", shards.size(), kMaxShards);
  counts.Update(CheckCount(name, "groups", groups.size(), kMaxGroups));
  counts.Update(CheckCount(name, "codecs", codecs, kMaxCodecs));
  if (!counts.ok()) return counts;
  size_t bytes = kMaxFixedBytes + ShardsBytes(shards.size()) + codecs * kMaxEnumBytes;
  for (const KeyGroup& g : groups) {
    if (!AddGroupBytes(g.keys.size(), g.keys.size_bytes(), 0, bytes)) return TooLarge(name, bytes);
  }
  return bytes;
}

uint8_t* WriteKeyGroups(const uint8_t* base, uint8_t* at, uint32_t field,
                        std::span<const KeyGroup> groups) {
  for (const KeyGroup& g : groups) {
    const GroupPlace place = WriteGroup(base, at, field, g.table, g.shard, g.keys, 0);
    const uint32_t crc = CrcOf(g.keys);
    std::memcpy(place.crc, &crc, 4);
  }
  return at;
}

// As protobuf writes an enum's number, which may be negative.
uint64_t EnumNumber(ValueCodec codec) { return static_cast<uint64_t>(static_cast<int64_t>(codec)); }

}  // namespace

absl::StatusOr<Buffer> EncodePullRequest(const Header& header, Step step, uint32_t wait_ms,
                                         std::span<const ShardId> shards,
                                         std::span<const KeyGroup> groups,
                                         const PullExtras& extras) {
  const std::vector<ValueCodec>& codecs = extras.codec.of_table;
  const auto bytes = KeyRequestBytes("PullRequest", shards, groups, codecs.size());
  if (!bytes.ok()) return bytes.status();
  BufferBuilder out(*bytes);
  uint8_t* at = WriteHeader(out.data(), header);
  at = WriteNumber(at, 2, step.value);
  at = WriteNumber(at, 3, wait_ms);
  at = WriteShards(at, 4, shards);
  at = WriteKeyGroups(out.data(), at, 5, groups);
  if (extras.want_ticket) at = WriteNumber(at, 6, 1);
  const ValueCodec others = extras.codec.others;
  if (others != ValueCodec::kFloat32) at = WriteNumber(at, 7, EnumNumber(others));
  at = WriteTicket(at, 8, extras.ticket);
  for (const ValueCodec codec : codecs) at = WriteNumber(at, 9, EnumNumber(codec));
  return out.Finish(static_cast<size_t>(at - out.data()));
}

absl::StatusOr<Buffer> EncodePrefetchRequest(const Header& header, Step step,
                                             std::span<const ShardId> shards,
                                             std::span<const KeyGroup> groups) {
  const absl::StatusOr<size_t> bytes = KeyRequestBytes("PrefetchRequest", shards, groups);
  if (!bytes.ok()) return bytes.status();
  BufferBuilder out(*bytes);
  uint8_t* at = WriteHeader(out.data(), header);
  at = WriteNumber(at, 2, step.value);
  at = WriteShards(at, 3, shards);
  at = WriteKeyGroups(out.data(), at, 4, groups);
  return out.Finish(static_cast<size_t>(at - out.data()));
}

uint32_t FingerprintOf(std::span<const KeyGroup> groups) {
  uint32_t fingerprint = 0;
  for (const KeyGroup& g : groups) {
    fingerprint = ExtendFingerprint(fingerprint, g.table, g.shard, g.keys.size(), CrcOf(g.keys));
  }
  return fingerprint;
}

std::span<uint8_t> GroupWriter::bytes(size_t i) {
  const Place& place = places_[i];
  return {out_.data() + place.values_at, place.value_bytes};
}

std::span<float> GroupWriter::values(size_t i) {
  const Place& place = places_[i];
  return {reinterpret_cast<float*>(out_.data() + place.values_at), place.value_bytes / 4};
}

void GroupWriter::Seal(size_t i) {
  Place& place = places_[i];
  const uint32_t crc =
      Crc32cExtend(place.keys_crc, {out_.data() + place.values_at, place.value_bytes});
  std::memcpy(out_.data() + place.crc_at, &crc, 4);
  place.sealed = true;
}

void GroupWriter::SealAll() {
  for (size_t i = 0; i < places_.size(); ++i) {
    if (!places_[i].sealed) Seal(i);
  }
}

void GroupWriter::AddGroup(uint8_t*& at, uint32_t field, TableId table, ShardId shard,
                           std::span<const Key> keys, size_t value_bytes, uint32_t keys_crc) {
  const uint8_t* const base = out_.data();
  const GroupPlace p = WriteGroup(base, at, field, table, shard, keys, value_bytes);
  Place& place = places_.emplace_back();
  place.keys_crc = keys_crc;
  place.values_at = p.values == nullptr ? 0 : static_cast<size_t>(p.values - base);
  place.value_bytes = value_bytes;
  place.crc_at = static_cast<size_t>(p.crc - base);
}

namespace {

absl::Status AskForLess(const absl::Status& too_large) {
  return absl::InvalidArgumentError(
      absl::StrCat(too_large.message(), "; a pull of fewer shards or keys fits"));
}

}  // namespace

absl::StatusOr<PullReplyEncoder> PullReplyEncoder::Make(std::span<const ValueGroup> groups) {
  const absl::Status counts = CheckCount("PullReply", "groups", groups.size(), kMaxGroups);
  if (!counts.ok()) return AskForLess(counts);
  size_t bytes = kMaxFixedBytes;
  for (const ValueGroup& g : groups) {
    if (!AddGroupBytes(g.keys, 0, ValueBytes(g.codec, g.dim), bytes)) {
      return AskForLess(TooLarge("PullReply", bytes));
    }
  }
  absl::StatusOr<BufferBuilder> out = BufferBuilder::Make(bytes);
  if (!out.ok()) return out.status();
  PullReplyEncoder encoder(*std::move(out));
  encoder.places_.reserve(groups.size());
  uint8_t* at = encoder.out_.data();
  for (const ValueGroup& g : groups) {
    encoder.AddGroup(at, 3, g.table, g.shard, {}, g.keys * ValueBytes(g.codec, g.dim), 0);
  }
  encoder.used_ = static_cast<size_t>(at - encoder.out_.data());
  return encoder;
}

Buffer PullReplyEncoder::Finish(const ServerState& state, PullOutcome outcome,
                                const Ticket& ticket) {
  SealAll();
  uint8_t* at = WriteState(out_.data() + used_, state);
  // Enums are sign-extended to 64 bits.
  at = WriteNumber(at, 2, static_cast<uint64_t>(static_cast<int64_t>(outcome)));
  at = WriteTicket(at, 4, ticket);
  places_.clear();
  return out_.Finish(static_cast<size_t>(at - out_.data()));
}

absl::StatusOr<PushRequestEncoder> PushRequestEncoder::Make(
    std::span<const ShardId> shards, std::span<const PushContribution> contributions) {
  size_t bytes = kMaxFixedBytes + ShardsBytes(shards.size());
  size_t groups = 0;
  for (const PushContribution& c : contributions) {
    bytes += kMaxContributionBytes;
    for (const PushGroup& g : c.groups) {
      if (!AddGroupBytes(g.keys.size(), g.keys.size_bytes(), uint64_t{g.dim} * 4, bytes)) {
        return TooLarge("PushRequest", bytes);
      }
    }
    groups += c.groups.size();
  }
  absl::Status counts = CheckCount("PushRequest", "shards", shards.size(), kMaxShards);
  counts.Update(
      CheckCount("PushRequest", "contributions", contributions.size(), kMaxContributions));
  counts.Update(CheckCount("PushRequest", "groups", groups, kMaxGroups));
  if (!counts.ok()) return counts;
  PushRequestEncoder encoder{BufferBuilder(bytes)};
  encoder.places_.reserve(groups);
  uint8_t* at = WriteShards(encoder.out_.data(), 8, shards);
  for (const PushContribution& c : contributions) {
    size_t most = kMaxContributionBytes;
    for (const PushGroup& g : c.groups) {
      most += MaxGroupBytes(g.keys.size(), g.keys.size() * g.dim);
    }
    Embedded contribution(at, 9, most);
    at = WriteNumber(at, 1, c.node.first);
    at = WriteNumber(at, 2, c.node.end);
    at = WriteNumber(at, 3, c.examples);
    for (const PushGroup& g : c.groups) {
      encoder.AddGroup(at, 4, g.table, g.shard, c.ticket ? std::span<const Key>() : g.keys,
                       g.keys.size() * g.dim * 4, CrcOf(g.keys));
    }
    at = WriteTicket(at, 5, c.ticket);
    contribution.Close();
  }
  encoder.used_ = static_cast<size_t>(at - encoder.out_.data());
  return encoder;
}

Buffer PushRequestEncoder::Finish(const PushFields& fields) {
  SealAll();
  uint8_t* at = WriteHeader(out_.data() + used_, fields.header);
  at = WriteNumber(at, 2, fields.sequence.value);
  at = WriteNumber(at, 3, fields.step.value);
  at = WriteNumber(at, 4, fields.task.value);
  at = WriteNumber(at, 5, fields.window);
  at = WriteNumber(at, 6, fields.cut);
  at = WriteNumber(at, 7, fields.lane.value);
  places_.clear();
  return out_.Finish(static_cast<size_t>(at - out_.data()));
}

}  // namespace strata::wire

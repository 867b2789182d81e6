// Forward: log entries and images from one copy of a server's shards to the next.
#include <cstring>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/core/checksum.h"
#include "proto/wire/format.h"
#include "proto/wire/header_codec.h"
#include "proto/wire/message_codec.h"
#include "proto/wire/message_limits.h"

namespace strata::wire {
namespace {

void Read(FieldReader& r, ForwardEntryView& out) {
  while (r.Next()) {
    switch (r.field()) {
      case 1:
        r.Varint(out.shard.value);
        break;
      case 2:
        r.Bytes(out.header);
        break;
      case 3:
        r.Bytes(out.payload);
        break;
      case 4:
        r.Fixed32(out.crc32c);
        break;
      default:
        r.Skip();
    }
  }
}

void Read(FieldReader& r, ForwardImageView& out) {
  while (r.Next()) {
    switch (r.field()) {
      case 1:
        r.Varint(out.shard.value);
        break;
      case 2:
        r.Fixed64(out.image);
        break;
      case 3:
        r.Varint(out.offset);
        break;
      case 4:
        r.Bytes(out.data);
        break;
      case 5:
        r.Fixed32(out.crc32c);
        break;
      case 6:
        r.Varint(out.bytes);
        break;
      default:
        r.Skip();
    }
  }
}

// ASCII: what protobuf refuses as text is refused here, too.
void ReadLogId(FieldReader& r, std::string& out) {
  ReadText(r, out);
  for (const char c : out) {
    if (static_cast<unsigned char>(c) < 0x80) continue;
    r.Fail("a log id that is not of hexadecimal digits");
    return;
  }
}

void Read(FieldReader& r, ForwardRequestView& out) {
  ForwardFields& fields = out.fields;
  while (r.Next()) {
    switch (r.field()) {
      case 1:
        r.Message("Header", [&](FieldReader& sub) { wire::Read(sub, fields.header); });
        break;
      case 2:
        ReadText(r, fields.cluster_id);
        break;
      case 3:
        ReadText(r, fields.job_uid);
        break;
      case 4:
        r.Varint(fields.chain_epoch);
        break;
      case 5:
        ReadLogId(r, fields.from_log_id);
        break;
      case 6:
        ReadLogId(r, fields.log_id);
        break;
      case 7:
        if (Full(r, out.entries.size(), kMaxForwarded)) return;
        r.Message("ForwardEntry", [&](FieldReader& sub) { Read(sub, out.entries.emplace_back()); });
        break;
      case 8:
        if (Full(r, out.images.size(), kMaxForwarded)) return;
        r.Message("ForwardImage", [&](FieldReader& sub) { Read(sub, out.images.emplace_back()); });
        break;
      case 9:
        r.Varint(fields.wait_ms);
        break;
      default:
        r.Skip();
    }
  }
}

void Read(FieldReader& r, ForwardEnd& out) {
  while (r.Next()) {
    switch (r.field()) {
      case 1:
        r.Varint(out.shard.value);
        break;
      case 2:
        r.Varint(out.empty);
        break;
      case 3:
        r.Varint(out.step);
        break;
      case 4:
        r.Varint(out.cut);
        break;
      case 5:
        r.Varint(out.committed_step);
        break;
      case 6:
        r.Varint(out.committed_cut);
        break;
      case 7:
        r.Fixed64(out.image);
        break;
      case 8:
        r.Varint(out.image_bytes);
        break;
      default:
        r.Skip();
    }
  }
}

void Read(FieldReader& r, ForwardReply& out) {
  while (r.Next()) {
    switch (r.field()) {
      case 1:
        r.Message("ServerState", [&](FieldReader& sub) { wire::Read(sub, out.state); });
        break;
      case 2:
        r.Varint(out.chain_epoch);
        break;
      case 3:
        if (Full(r, out.ends.size(), kMaxShards)) return;
        r.Message("ForwardEnd", [&](FieldReader& sub) { Read(sub, out.ends.emplace_back()); });
        break;
      default:
        r.Skip();
    }
  }
}

uint8_t* WriteBytes(uint8_t* at, uint32_t field, std::span<const uint8_t> bytes) {
  at = WriteTag(at, field, kLength);
  at = WriteVarint(at, bytes.size(), VarintBytes(bytes.size()));
  if (!bytes.empty()) std::memcpy(at, bytes.data(), bytes.size());
  return at + bytes.size();
}

// Bytes of a field whose content has `bytes`.
size_t FieldBytes(size_t bytes) { return 1 + VarintBytes(bytes) + bytes; }

uint8_t* WriteEntry(uint8_t* at, const ForwardEntryView& e) {
  const size_t bytes = 1 + VarintBytes(e.shard.value) + FieldBytes(e.header.size()) +
                       FieldBytes(e.payload.size()) + 5;
  at = WriteTag(at, 7, kLength);
  at = WriteVarint(at, bytes, VarintBytes(bytes));
  at = WriteNumber(at, 1, e.shard.value);
  at = WriteBytes(at, 2, e.header);
  at = WriteBytes(at, 3, e.payload);
  return WriteFixed(at, 4, e.crc32c);
}

uint8_t* WriteImage(uint8_t* at, const ForwardImageView& i) {
  const size_t bytes = 1 + VarintBytes(i.shard.value) + 9 + 1 + VarintBytes(i.offset) +
                       FieldBytes(i.data.size()) + 5 + 1 + VarintBytes(i.bytes);
  at = WriteTag(at, 8, kLength);
  at = WriteVarint(at, bytes, VarintBytes(bytes));
  at = WriteNumber(at, 1, i.shard.value);
  at = WriteFixed(at, 2, i.image);
  at = WriteNumber(at, 3, i.offset);
  at = WriteBytes(at, 4, i.data);
  at = WriteFixed(at, 5, i.crc32c);
  return WriteNumber(at, 6, i.bytes);
}

}  // namespace

uint32_t ForwardCrc(std::span<const uint8_t> header, std::span<const uint8_t> payload) {
  return Crc32cExtend(Crc32c(header), payload);
}

absl::StatusOr<ForwardRequestView> ParseForwardRequest(std::span<const uint8_t> bytes) {
  return ParseMessage<ForwardRequestView>(
      "ForwardRequest", bytes, [](FieldReader& r, ForwardRequestView& out) { Read(r, out); });
}

absl::StatusOr<ForwardReply> ParseForwardReply(std::span<const uint8_t> bytes) {
  return ParseMessage<ForwardReply>("ForwardReply", bytes,
                                    [](FieldReader& r, ForwardReply& out) { Read(r, out); });
}

absl::StatusOr<Buffer> EncodeForwardRequest(const ForwardRequestView& message) {
  const ForwardFields& f = message.fields;
  size_t most = kMaxFixedBytes + f.cluster_id.size() + f.job_uid.size() + f.from_log_id.size() +
                f.log_id.size();
  for (const ForwardEntryView& e : message.entries) {
    most += kMaxForwardBytes + e.header.size() + e.payload.size();
  }
  for (const ForwardImageView& i : message.images) most += kMaxForwardBytes + i.data.size();
  if (most > kMaxMessageBytes) {
    return absl::ResourceExhaustedError(absl::StrCat("ForwardRequest of ", most,
                                                     " bytes or more, the limit of a message is ",
                                                     kMaxMessageBytes));
  }
  auto out = BufferBuilder::Make(most);
  if (!out.ok()) return out.status();
  uint8_t* at = WriteHeader(out->data(), f.header);
  at = WriteText(at, 2, f.cluster_id);
  at = WriteText(at, 3, f.job_uid);
  at = WriteNumber(at, 4, f.chain_epoch);
  at = WriteText(at, 5, f.from_log_id);
  at = WriteText(at, 6, f.log_id);
  for (const ForwardEntryView& e : message.entries) at = WriteEntry(at, e);
  for (const ForwardImageView& i : message.images) at = WriteImage(at, i);
  at = WriteNumber(at, 9, f.wait_ms);
  return out->Finish(static_cast<size_t>(at - out->data()));
}

Buffer EncodeForwardReply(const ForwardReply& message) {
  BufferBuilder out(kMaxFixedBytes + message.ends.size() * kMaxForwardEndBytes);
  uint8_t* at = WriteState(out.data(), message.state);
  at = WriteNumber(at, 2, message.chain_epoch);
  for (const ForwardEnd& e : message.ends) {
    at = WriteTag(at, 3, kLength);
    uint8_t* const length = at++;
    at = WriteNumber(at, 1, e.shard.value);
    at = WriteNumber(at, 2, e.empty ? 1 : 0);
    at = WriteNumber(at, 3, e.step);
    at = WriteNumber(at, 4, e.cut);
    at = WriteNumber(at, 5, e.committed_step);
    at = WriteNumber(at, 6, e.committed_cut);
    at = WriteFixed(at, 7, e.image);
    at = WriteNumber(at, 8, e.image_bytes);
    *length = static_cast<uint8_t>(at - length - 1);  // <= 72
  }
  return out.Finish(static_cast<size_t>(at - out.data()));
}

}  // namespace strata::wire

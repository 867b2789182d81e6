#include "proto/wire/forward_entry.h"

#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/core/checksum.h"
#include "proto/wire/format.h"
#include "proto/wire/message_codec.h"
#include "proto/wire/message_limits.h"

namespace strata::wire {
namespace {

constexpr size_t kAlignment = ForwardEntryBytes::kAlignment;
constexpr size_t kMostVarint = 10;

// The smallest length of a number's encoding, from `least` on, after which `at` and the number end
// at a multiple of kAlignment; `least` where there is none.
size_t AlignedVarint(size_t at, size_t least) {
  for (size_t bytes = least; bytes <= kMostVarint; ++bytes) {
    if ((at + bytes) % kAlignment == 0) return bytes;
  }
  return least;
}

// Of the header's length, as which it may take up to 5 bytes, so that the payload is aligned.
size_t HeaderLengthBytes(size_t header, size_t other) {
  const size_t least = VarintBytes(header);
  for (size_t bytes = least; bytes <= 5; ++bytes) {
    if ((other + bytes) % kAlignment == 0) return bytes;
  }
  return least;
}

}  // namespace

// tag, length (5 bytes) | tag, length, header | tag, length (3 to 5), payload | crc | shard, as
// long as it takes to end at a multiple of kAlignment.
ForwardEntryBytes ForwardEntryBytes::Encode(ShardId shard, std::span<const uint8_t> header,
                                            std::span<const std::span<const uint8_t>> parts,
                                            std::optional<uint32_t> payload_crc32c) {
  ForwardEntryBytes e;
  e.shard_ = shard;
  e.header_bytes_ = header.size();
  for (const auto part : parts) e.payload_bytes_ += part.size();
  size_t payload_length = VarintBytes(e.payload_bytes_);
  size_t header_length = 0;
  for (;; ++payload_length) {
    const size_t other = 1 + 5 + 1 + header.size() + 1 + payload_length;
    header_length = HeaderLengthBytes(header.size(), other);
    if ((other + header_length) % kAlignment == 0 || payload_length == 5) break;
  }
  e.header_at_ = 1 + 5 + 1 + header_length;
  e.payload_at_ = e.header_at_ + header.size() + 1 + payload_length;
  const size_t shard_at = e.payload_at_ + e.payload_bytes_ + 5;
  const size_t shard_length = AlignedVarint(shard_at + 1, VarintBytes(shard.value));
  BufferBuilder out(shard_at + 1 + shard_length);
  uint8_t* at = WriteVarint(WriteTag(out.data(), 7, kLength), out.size() - 6, 5);
  at = WriteVarint(WriteTag(at, 2, kLength), header.size(), header_length);
  std::memcpy(at, header.data(), header.size());
  at = WriteVarint(WriteTag(at + header.size(), 3, kLength), e.payload_bytes_, payload_length);
  uint32_t crc = payload_crc32c.value_or(0);
  for (const auto part : parts) {
    if (part.empty()) continue;
    if (payload_crc32c) {
      std::memcpy(at, part.data(), part.size());
    } else {
      crc = Crc32cCopy(crc, part, at);
    }
    at += part.size();
  }
  e.crc32c_ = Crc32cJoin(Crc32c(header), crc, e.payload_bytes_);
  at = WriteFixed(at, 4, e.crc32c_);
  WriteVarint(WriteTag(at, 1, kVarint), shard.value, shard_length);
  e.bytes_ = out.Finish();
  return e;
}

ForwardEntryView ForwardEntryBytes::view() const {
  return {shard_, bytes_.span().subspan(header_at_, header_bytes_),
          bytes_.span().subspan(payload_at_, payload_bytes_), crc32c_};
}

// The sum of both is that of the header, moved by the payload's bytes, and that of the payload.
uint32_t PayloadCrcOf(const ForwardEntryView& entry) {
  return entry.crc32c ^ Crc32cJoin(Crc32c(entry.header), 0, entry.payload.size());
}

absl::StatusOr<std::vector<Buffer>> EncodeForwardPieces(const ForwardRequestView& message,
                                                        std::span<const Buffer> entries) {
  auto first = EncodeForwardRequest(message);
  if (!first.ok()) return first.status();
  size_t bytes = first->size();
  // The time to wait once more, at the end, where it may be as long as entries need it.
  const size_t length = AlignedVarint(bytes + 1, VarintBytes(message.fields.wait_ms));
  BufferBuilder again(1 + length);
  WriteVarint(WriteTag(again.data(), 9, kVarint), message.fields.wait_ms, length);
  std::vector<Buffer> pieces = {*std::move(first), again.Finish()};
  bytes += pieces.back().size();
  for (const Buffer& entry : entries) bytes += entry.size();
  if (bytes > kMaxMessageBytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "ForwardRequest of ", bytes, " bytes, the limit of a message is ", kMaxMessageBytes));
  }
  pieces.insert(pieces.end(), entries.begin(), entries.end());
  return pieces;
}

}  // namespace strata::wire

// Entries that are encoded once, in whatever message they go.
#include "proto/wire/forward_entry.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/core/checksum.h"
#include "proto/core/ids.h"
#include "proto/strata/data.pb.h"
#include "proto/wire/buffer.h"
#include "proto/wire/message.h"
#include "proto/wire/message_codec.h"
#include "proto/wire/message_limits.h"

namespace strata::wire {
namespace {

std::vector<uint8_t> Pattern(size_t bytes, uint8_t first) {
  std::vector<uint8_t> out(bytes);
  for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<uint8_t>(first + i * 7);
  return out;
}

Buffer Together(const std::vector<Buffer>& pieces) {
  std::vector<uint8_t> all;
  for (const Buffer& p : pieces) all.insert(all.end(), p.span().begin(), p.span().end());
  return Buffer::CopyOf(all);  // at a multiple of 64, as a transport receives it
}

std::string Text(std::span<const uint8_t> bytes) { return {bytes.begin(), bytes.end()}; }

TEST_CASE("entries arrive as they went, each payload where a machine can read it", "[forward]") {
  for (const size_t ids : {0, 1, 5, 6}) {  // the message before the entries has any length
    for (const uint32_t wait_ms : {0u, 1000u, 60000u}) {
      ForwardRequestView message;
      message.fields.job_uid = std::string(ids, 'j');
      message.fields.chain_epoch = 7;
      message.fields.wait_ms = wait_ms;
      const auto copied = Pattern(13, 3);
      message.entries.push_back({ShardId(9), copied, copied, ForwardCrc(copied, copied)});
      std::vector<Buffer> entries;
      std::vector<ForwardEntryBytes> made;
      std::vector<std::vector<uint8_t>> headers, payloads;
      for (const size_t bytes : {0, 1, 7, 8, 24, 127, 128, 5000, 20000, 3'000'001}) {
        headers.push_back(Pattern(160, static_cast<uint8_t>(bytes)));
        payloads.push_back(Pattern(bytes, 1));
        const std::span<const uint8_t> payload = payloads.back();
        const std::span<const uint8_t> parts[] = {
            payload.first(bytes / 3), {}, payload.subspan(bytes / 3)};
        const bool known = bytes % 2 == 0;
        made.push_back(ForwardEntryBytes::Encode(
            ShardId(static_cast<uint32_t>(made.size() * 1000)), headers.back(), parts,
            known ? std::optional<uint32_t>(Crc32c(payload)) : std::nullopt));
        entries.push_back(made.back().bytes());
      }
      const auto pieces = EncodeForwardPieces(message, entries);
      REQUIRE(pieces.ok());
      const Buffer sent = Together(*pieces);
      const auto got = ParseForwardRequest(sent.span());
      INFO(got.status());
      REQUIRE(got.ok());
      CHECK(got->fields == message.fields);
      REQUIRE(got->entries.size() == 1 + entries.size());
      ForwardRequest oracle;
      REQUIRE(oracle.ParseFromArray(sent.data(), static_cast<int>(sent.size())));
      for (size_t i = 0; i < entries.size(); ++i) {
        const ForwardEntryView& e = got->entries[i + 1];
        const ForwardEntryView own = made[i].view();
        CHECK(e.shard.value == i * 1000);
        CHECK(Text(e.header) == Text(headers[i]));
        CHECK(Text(e.payload) == Text(payloads[i]));
        CHECK(e.crc32c == ForwardCrc(headers[i], payloads[i]));
        CHECK(reinterpret_cast<uintptr_t>(e.payload.data()) % 8 == 0);
        CHECK(Text(own.payload) == Text(payloads[i]));
        CHECK(Text(own.header) == Text(headers[i]));
        CHECK(own.crc32c == e.crc32c);
        const ForwardEntry& other = oracle.entries(static_cast<int>(i) + 1);
        CHECK(other.payload() == Text(payloads[i]));
        CHECK(other.shard() == e.shard.value);
        CHECK(other.crc32c() == e.crc32c);
      }
    }
  }
}

TEST_CASE("the pieces share what the entries point into", "[forward]") {
  const auto payload = Pattern(100'000, 1);
  const std::span<const uint8_t> parts[] = {payload};
  const auto entry = ForwardEntryBytes::Encode(ShardId(1), Pattern(160, 1), parts);
  const Buffer bytes = entry.bytes();
  const auto pieces = EncodeForwardPieces({}, {&bytes, 1});
  REQUIRE(pieces.ok());
  CHECK(pieces->back().data() == bytes.data());
}

TEST_CASE("pieces that are more than a message are refused", "[forward]") {
  BufferBuilder half(kMaxMessageBytes / 2);
  const Buffer bytes = half.Finish();
  const Buffer entries[] = {bytes, bytes};
  CHECK(absl::IsResourceExhausted(EncodeForwardPieces({}, entries).status()));
}

}  // namespace
}  // namespace strata::wire

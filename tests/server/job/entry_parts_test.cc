// Records that are longer than a message.
#include "server/job/entry_parts.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/core/checksum.h"
#include "proto/core/ids.h"
#include "proto/wire/buffer.h"
#include "proto/wire/message_codec.h"
#include "server/job/chain_entries.h"
#include "storage/log/record.h"

namespace strata::server {
namespace {

constexpr ShardId kShard(3);

std::vector<uint8_t> Payload(size_t bytes) {
  std::vector<uint8_t> payload(bytes);
  for (size_t i = 0; i < bytes; ++i) payload[i] = static_cast<uint8_t>(i * 7 + i / 251);
  return payload;
}

ChainEntryPtr Entry(uint64_t step, const std::vector<uint8_t>& payload) {
  storage::LogHeader header;
  header.shard = kShard;
  header.step = Step(step);
  const std::span<const uint8_t> parts[] = {payload};
  return MakeChainEntry(header, {step, 0}, parts);
}

struct Receiver {
  uint64_t limit = uint64_t{1} << 40;
  uint64_t held = 0;
  EntryParts parts{[this](uint64_t bytes) -> absl::StatusOr<std::shared_ptr<void>> {
    if (bytes > limit) return absl::ResourceExhaustedError("too much");
    held += bytes;
    return std::shared_ptr<void>(this, [bytes](Receiver* r) { r->held -= bytes; });
  }};

  // As a message brings it.
  absl::StatusOr<std::optional<EntryParts::Whole>> Take(const wire::ForwardEntryView& entry) {
    wire::ForwardRequestView request;
    request.entries.push_back(entry);
    message = *wire::EncodeForwardRequest(request);
    return parts.Take(wire::ParseForwardRequest(message.span())->entries.at(0));
  }
  Buffer message;
};

TEST_CASE("a record of 70 MiB goes in parts, and arrives as it is", "[entry_parts]") {
  const auto payload = Payload(size_t{70} << 20);
  const ChainEntryPtr entry = Entry(5, payload);
  {  // whole it is no message
    wire::ForwardRequestView request;
    request.entries.push_back(entry->sent.view());
    CHECK(absl::IsResourceExhausted(wire::EncodeForwardRequest(request).status()));
  }
  Receiver receiver;
  std::optional<EntryParts::Whole> whole;
  size_t calls = 0;
  for (uint64_t offset = 0; offset < payload.size(); ++calls) {
    CHECK_FALSE(whole);
    const auto part = EntryPart::From(entry, offset, uint64_t{16} << 20);
    auto taken = receiver.Take(part->View(kShard));
    INFO(taken.status());
    REQUIRE(taken.ok());
    whole = *std::move(taken);
    offset += part->bytes;
    CHECK(receiver.held == payload.size());
  }
  CHECK(calls == 5);
  REQUIRE(whole);
  CHECK(whole->record.header.step == Step(5));
  CHECK(whole->record.header.shard == kShard);
  CHECK(std::equal(payload.begin(), payload.end(), whole->record.payload.begin(),
                   whole->record.payload.end()));
  whole.reset();
  CHECK(receiver.held == 0);
}

TEST_CASE("a part that does not follow is refused, and a record begins anew", "[entry_parts]") {
  const auto payload = Payload(1000);
  const ChainEntryPtr entry = Entry(5, payload), other = Entry(6, Payload(900));
  Receiver receiver;
  const auto send = [&](const ChainEntryPtr& e, uint64_t offset) {
    return receiver.Take(EntryPart::From(e, offset, 400)->View(kShard));
  };
  CHECK(absl::IsFailedPrecondition(send(entry, 400).status()));  // its beginning was lost
  REQUIRE(send(entry, 0).ok());
  CHECK(absl::IsFailedPrecondition(send(entry, 800).status()));
  CHECK(absl::IsFailedPrecondition(send(other, 400).status()));
  CHECK_FALSE(send(entry, 400)->has_value());
  CHECK_FALSE(send(entry, 0)->has_value());  // sent again from its beginning
  CHECK_FALSE(send(entry, 400)->has_value());
  const auto whole = send(entry, 800);
  REQUIRE(whole.ok());
  REQUIRE(whole->has_value());
  CHECK((*whole)->record.payload.size() == 1000);
  // What comes in one piece needs no memory of its own.
  receiver.limit = 0;
  const auto small = receiver.Take(entry->sent.view());
  REQUIRE(small.ok());
  CHECK((*small)->record.payload.size() == 1000);
  CHECK(absl::IsResourceExhausted(send(entry, 0).status()));
  CHECK(absl::IsFailedPrecondition(send(entry, 400).status()));
}

// Who appends a record sums it up anyway.
TEST_CASE("a record in one piece comes with what it has to sum up to", "[entry_parts]") {
  const auto payload = Payload(1000);
  const ChainEntryPtr entry = Entry(5, payload);
  Receiver receiver;
  wire::ForwardEntryView view = entry->sent.view();
  CHECK((*receiver.Take(view))->crc32c == Crc32c(payload));
  auto damaged = payload;
  damaged[700] ^= 4;
  view.payload = damaged;
  CHECK((*receiver.Take(view))->crc32c == Crc32c(payload));
  std::vector<uint8_t> header(view.header.begin(), view.header.end());
  header[20] ^= 1;
  view.header = header;
  CHECK(absl::IsDataLoss(receiver.Take(view).status()));
}

TEST_CASE("a part that is damaged is not taken", "[entry_parts]") {
  const ChainEntryPtr entry = Entry(5, Payload(1000));
  Receiver receiver;
  const auto part = EntryPart::From(entry, 0, 400);
  wire::ForwardEntryView view = part->View(kShard);
  ++view.crc32c;
  CHECK(absl::IsDataLoss(receiver.Take(view).status()));
  view = part->View(kShard);
  view.payload = view.payload.first(399);
  CHECK(absl::IsDataLoss(receiver.Take(view).status()));
  view = part->View(kShard);
  view.header = view.header.first(100);
  CHECK(absl::IsDataLoss(receiver.Take(view).status()));
}

}  // namespace
}  // namespace strata::server

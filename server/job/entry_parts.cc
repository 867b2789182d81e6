#include "server/job/entry_parts.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/wire/forward_entry.h"
#include "proto/wire/message_codec.h"
#include "storage/log/update_log.h"

namespace strata::server {

using storage::log::kRecordHeaderBytes;

std::unique_ptr<EntryPart> EntryPart::From(ChainEntryPtr entry, uint64_t offset,
                                           uint64_t most_bytes) {
  auto part = std::make_unique<EntryPart>();
  const wire::ForwardEntryView sent = entry->sent.view();
  const uint64_t all = sent.payload.size();
  const auto whole = storage::log::DecodeRecordHeader({}, sent.header.data());
  part->offset = offset;
  part->bytes = std::min(most_bytes, all - offset);
  storage::log::EncodeRecordHeader(whole->header, {{0, offset}, 0}, {all, 0}, part->header.data());
  part->entry = std::move(entry);
  return part;
}

wire::ForwardEntryView EntryPart::View(ShardId shard) const {
  const auto payload = entry->sent.view().payload.subspan(offset, bytes);
  return {shard, header, payload, wire::ForwardCrc(header, payload)};
}

// 1 a record in one piece: its payload is not looked at  2 the first part of one: what was there of
// another goes  3 the part that follows what is there.
absl::StatusOr<std::optional<EntryParts::Whole>> EntryParts::Take(
    const wire::ForwardEntryView& entry) {
  const auto damaged = [&](const char* what) {
    return absl::DataLossError(
        absl::StrCat("entry of shard ", entry.shard.value, ": ", what, " is damaged"));
  };
  if (entry.header.size() != kRecordHeaderBytes) return damaged("its header");
  const uint64_t bytes = entry.payload.size();
  auto record = storage::log::DecodeRecordHeader({}, entry.header.data());
  if (record && record->payload.bytes == bytes) {
    return Whole{{{}, record->header, entry.payload}, wire::PayloadCrcOf(entry), Buffer(), nullptr};
  }
  if (wire::ForwardCrc(entry.header, entry.payload) != entry.crc32c) return damaged("its content");
  absl::MutexLock lock(&mu_);
  if (record) {
    payload_.reset();
    held_.reset();
    received_ = 0;
    const uint64_t all = record->payload.bytes;
    if (bytes > all || all > storage::UpdateLog::kMaxPayloadBytes) return damaged("its header");
    auto held = memory_(all);
    if (!held.ok()) return held.status();
    auto made = BufferBuilder::Make(all);
    if (!made.ok()) return made.status();
    held_ = *std::move(held);
    payload_ = *std::move(made);
  } else {
    record = storage::log::DecodeRecordHeader({0, received_}, entry.header.data());
    if (!record || !payload_ || record->payload.bytes != payload_->size() ||
        bytes > payload_->size() - received_) {
      return absl::FailedPreconditionError(absl::StrCat(
          "entry of shard ", entry.shard.value, ": a part of a record does not follow the ",
          received_, " bytes of it that are here; send it from its beginning"));
    }
  }
  if (bytes > 0) std::memcpy(payload_->data() + received_, entry.payload.data(), bytes);
  received_ += bytes;
  if (received_ < payload_->size()) return std::optional<Whole>();
  Whole whole{{{}, record->header, {}}, std::nullopt, payload_->Finish(), std::move(held_)};
  whole.record.payload = whole.payload.span();
  payload_.reset();
  received_ = 0;
  return whole;
}

}  // namespace strata::server

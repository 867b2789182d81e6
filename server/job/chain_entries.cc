#include "server/job/chain_entries.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/core/mutation.h"
#include "proto/wire/message_codec.h"
#include "server/shard/update_record.h"
#include "storage/log/format.h"

namespace strata::server {

wire::ForwardEntryView ChainEntry::View(ShardId shard) const {
  const auto header = bytes.span().first(storage::log::kRecordHeaderBytes);
  return {shard, header, bytes.span().subspan(header.size()), crc32c};
}

ChainEntryPtr MakeChainEntry(const storage::LogHeader& header, uint64_t segment, LogEnd end,
                             std::span<const std::span<const uint8_t>> parts) {
  size_t payload = 0;
  for (const auto& part : parts) payload += part.size();
  BufferBuilder out(storage::log::kRecordHeaderBytes + payload);
  storage::log::EncodeRecordHeader(header, {}, {payload, 0}, out.data());
  uint8_t* at = out.data() + storage::log::kRecordHeaderBytes;
  for (const auto& part : parts) {
    if (!part.empty()) std::memcpy(at, part.data(), part.size());
    at += part.size();
  }
  auto entry = std::make_shared<ChainEntry>();
  entry->end = end;
  entry->segment = segment;
  entry->bytes = out.Finish();
  const auto head = entry->bytes.span().first(storage::log::kRecordHeaderBytes);
  entry->crc32c = wire::ForwardCrc(head, entry->bytes.span().subspan(head.size()));
  return entry;
}

absl::StatusOr<storage::LogRecordView> RecordOf(const wire::ForwardEntryView& entry) {
  const auto damaged = [&](const char* what) {
    return absl::DataLossError(
        absl::StrCat("entry of shard ", entry.shard.value, ": ", what, " is damaged"));
  };
  if (entry.header.size() != storage::log::kRecordHeaderBytes) return damaged("its header");
  if (wire::ForwardCrc(entry.header, entry.payload) != entry.crc32c) return damaged("its content");
  const auto record = storage::log::DecodeRecordHeader({}, entry.header.data());
  if (!record || record->payload.bytes != entry.payload.size()) return damaged("its header");
  return storage::LogRecordView{{}, record->header, entry.payload};
}

absl::StatusOr<std::vector<ChainEntryPtr>> ReadChainEntries(storage::UpdateLog& log, ShardId shard,
                                                            uint64_t segment, LogEnd after,
                                                            LogEnd through, uint64_t most_bytes) {
  std::vector<ChainEntryPtr> entries;
  uint64_t bytes = 0;
  LogEnd end = after;
  const absl::Status enough = absl::CancelledError("enough");
  const auto is_cut = [](const storage::LogHeader& header) {
    return header.kind == static_cast<uint16_t>(RecordKind::kCut);
  };
  const auto wanted = [&](const storage::LogHeader& header) {
    return header.shard == shard &&
           (header.step.value > after.step || (is_cut(header) && header.step.value == after.step));
  };
  const uint64_t first = log.stats().first_segment;
  absl::Status s = log.Replay(
      std::max(segment, first), wanted, [&](const storage::LogRecordView& record) -> absl::Status {
        const LogEnd cut = {record.header.step.value, record.header.window};
        const EntryFit fit =
            is_cut(record.header) ? FitOfCut(end, cut) : FitOfStep(end, record.header.step.value);
        if (fit == EntryFit::kHave) return absl::OkStatus();  // written again after an error
        if (fit == EntryFit::kGap) {
          return absl::OutOfRangeError(
              absl::StrCat("the log of shard ", shard.value, " does not go on after step ",
                           end.step, ", cut ", end.cut, ", which the copy after this one has"));
        }
        end = is_cut(record.header) ? cut : LogEnd{end.step + 1, end.cut};
        const std::span<const uint8_t> parts[] = {record.payload};
        entries.push_back(MakeChainEntry(record.header, record.at.segment, end, parts));
        bytes += entries.back()->bytes.size();
        return bytes >= most_bytes || end >= through ? enough : absl::OkStatus();
      });
  if (!s.ok() && s != enough) return s;
  if (entries.empty()) {
    return absl::OutOfRangeError(absl::StrCat("the log of shard ", shard.value,
                                              " has nothing after step ", after.step, ", cut ",
                                              after.cut));
  }
  return entries;
}

void ChainEntries::Add(LogEnd before, ChainEntryPtr entry) {
  if (before != through() && !STRATA_MUTATION("chain.entries_with_gaps")) return;
  bytes_ += entry->bytes.size();
  entries_.push_back(std::move(entry));
}

void ChainEntries::DropFirst() {
  if (entries_.empty()) return;
  after_ = std::max(after_, entries_.front()->end);
  bytes_ -= entries_.front()->bytes.size();
  entries_.pop_front();
}

void ChainEntries::Have(LogEnd end) {
  while (!entries_.empty() && entries_.front()->end <= end) DropFirst();
}

void ChainEntries::Restart(LogEnd after) {
  entries_.clear();
  bytes_ = 0;
  after_ = after;
}

void ChainEntries::Take(LogEnd after, std::vector<ChainEntryPtr> entries) {
  if (entries.empty() || (after_ <= after && after < through())) return;
  if (after >= through() || entries.back()->end < after_) Restart(entries.back()->end);
  while (!entries.empty() && entries.back()->end > after_) entries.pop_back();
  for (auto it = entries.rbegin(); it != entries.rend(); ++it) {
    bytes_ += (*it)->bytes.size();
    entries_.push_front(*it);
  }
  after_ = after;
}

std::optional<std::vector<ChainEntryPtr>> ChainEntries::After(LogEnd end,
                                                              uint64_t most_bytes) const {
  if (end < after_ || end >= through()) {
    return std::nullopt;
  }
  std::vector<ChainEntryPtr> out;
  uint64_t bytes = 0;
  for (const ChainEntryPtr& entry : entries_) {
    if (entry->end <= end) continue;
    if (!out.empty() && bytes + entry->bytes.size() > most_bytes) break;
    bytes += entry->bytes.size();
    out.push_back(entry);
  }
  return out;
}

uint64_t ChainEntries::BytesAfter(LogEnd end) const {
  uint64_t bytes = 0;
  for (const ChainEntryPtr& entry : entries_) {
    if (entry->end > end) bytes += entry->bytes.size();
  }
  return bytes;
}

std::optional<uint64_t> ChainEntries::first_segment() const {
  if (entries_.empty()) return std::nullopt;
  return entries_.front()->segment;
}

}  // namespace strata::server

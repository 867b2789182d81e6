#include "server/job/chain_entries.h"

#include <algorithm>
#include <array>
#include <utility>

#include "proto/core/mutation.h"
#include "storage/log/format.h"

namespace strata::server {

ChainEntryPtr MakeChainEntry(const storage::LogHeader& header, LogEnd end,
                             std::span<const std::span<const uint8_t>> parts,
                             std::optional<uint32_t> crc32c) {
  size_t payload = 0;
  for (const auto& part : parts) payload += part.size();
  std::array<uint8_t, storage::log::kRecordHeaderBytes> head;
  storage::log::EncodeRecordHeader(header, {}, {payload, 0}, head.data());
  auto entry = std::make_shared<ChainEntry>();
  entry->end = end;
  entry->sent = wire::ForwardEntryBytes::Encode(header.shard, head, parts, crc32c);
  return entry;
}

std::deque<ChainEntries::Item>::const_iterator ChainEntries::Run::FirstAfter(LogEnd end) const {
  return std::upper_bound(items.begin(), items.end(), end,
                          [](LogEnd e, const Item& item) { return e < item.entry->end; });
}

void ChainEntries::Run::Push(ChainEntryPtr entry) {
  added += entry->size();
  items.push_back({std::move(entry), added});
}

void ChainEntries::Run::PopFirst() {
  if (items.empty()) return;
  after = std::max(after, items.front().entry->end);
  gone = items.front().bytes;
  items.pop_front();
}

void ChainEntries::Run::Have(LogEnd end) {
  while (!items.empty() && items.front().entry->end <= end) PopFirst();
}

void ChainEntries::Add(LogEnd before, ChainEntryPtr entry) {
  if (before != through() && !STRATA_MUTATION("chain.entries_with_gaps")) newest_ = Run(before);
  newest_.Push(std::move(entry));
}

void ChainEntries::DropFirst() { newest_.PopFirst(); }

void ChainEntries::Have(LogEnd committed, LogEnd end) {
  read_.Have(end);
  newest_.Have(committed);
}

void ChainEntries::Restart(LogEnd after) {
  read_ = Run(after);
  newest_ = Run(after);
}

void ChainEntries::Take(LogEnd after, std::vector<ChainEntryPtr> entries) {
  if (after != read_.through()) read_ = Run(after);
  for (ChainEntryPtr& entry : entries) read_.Push(std::move(entry));
}

std::optional<std::vector<ChainEntryPtr>> ChainEntries::After(LogEnd end, uint64_t most_bytes,
                                                              size_t most) const {
  if (!newest_.Has(end) && !read_.Has(end)) return std::nullopt;
  const Run& run = newest_.Has(end) ? newest_ : read_;
  std::vector<ChainEntryPtr> out;
  uint64_t bytes = 0;
  for (auto it = run.FirstAfter(end); it != run.items.end(); ++it) {
    const uint64_t more = it->entry->size();
    if (!out.empty() && (bytes + more > most_bytes || out.size() >= most)) break;
    bytes += more;
    out.push_back(it->entry);
  }
  return out;
}

uint64_t ChainEntries::BytesAfter(LogEnd end) const {
  uint64_t bytes = 0;
  for (const Run* run : {&read_, &newest_}) {
    const auto first = run->FirstAfter(end);
    const uint64_t before = first == run->items.begin() ? run->gone : std::prev(first)->bytes;
    bytes += run->added - before;
  }
  return bytes;
}

}  // namespace strata::server

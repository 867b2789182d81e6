#include "storage/row_file/memtable.h"

#include <algorithm>
#include <cstring>

namespace strata::storage::row_file {

void Memtable::Put(TableId table, uint32_t row_bytes, Position position, const uint8_t* row) {
  Table& t = tables_[table];
  t.row_bytes = row_bytes;
  const auto [it, fresh] = t.slots.try_emplace(position.value, kDeleted);
  if (fresh) bytes_ += 32;
  if (row == nullptr) {
    it->second = kDeleted;  // the room of its row, if any, stays unused until the flush
    return;
  }
  if (it->second == kDeleted) {
    if (t.rows % kSlabRows == 0) t.slabs.emplace_back(kSlabRows * row_bytes);
    it->second = t.rows++;
    bytes_ += row_bytes;
  }
  std::memcpy(t.Row(it->second), row, row_bytes);
}

Memtable::Hit Memtable::Get(TableId table, Position position) const {
  const auto t = tables_.find(table);
  if (t == tables_.end()) return {};
  const auto it = t->second.slots.find(position.value);
  if (it == t->second.slots.end()) return {};
  return {.known = true, .row = it->second == kDeleted ? nullptr : t->second.Row(it->second)};
}

std::vector<Memtable::Entry> Memtable::Sorted(RowKey first, RowKey last) const {
  std::vector<Entry> out;
  for (const auto& [id, t] : tables_) {
    const size_t begin = out.size();
    for (const auto& [position, slot] : t.slots) {
      const RowKey key{id, Position(position)};
      if (key < first || key > last) continue;
      out.push_back({key, t.row_bytes, slot == kDeleted ? nullptr : t.Row(slot)});
    }
    std::sort(out.begin() + static_cast<ptrdiff_t>(begin), out.end(),
              [](const Entry& a, const Entry& b) { return a.key < b.key; });
  }
  return out;
}

}  // namespace strata::storage::row_file

#include "tools/cluster/export/delta_copy.h"

#include <span>

#include "absl/strings/str_cat.h"
#include "storage/row/hash.h"

namespace strata {

const std::vector<uint8_t>* DeltaCopy::Find(TableId table, uint64_t key) const {
  const auto rows = rows_.find(table);
  if (rows == rows_.end()) return nullptr;
  const auto row = rows->second.find(key);
  return row == rows->second.end() ? nullptr : &row->second;
}

uint64_t DeltaCopy::rows(TableId table) const {
  const auto rows = rows_.find(table);
  return rows == rows_.end() ? 0 : rows->second.size();
}

absl::Status DeltaCopy::CheckHeader(const storage::DeltaHeader& header,
                                    const std::string& path) const {
  absl::Status s = storage::CheckFollows(header, at_);
  if (!s.ok()) return absl::Status(s.code(), absl::StrCat(path, ": ", s.message()));
  if (!at_) return s;
  if (header.with_state != with_state_ || header.tables != tables_) {
    return absl::FailedPreconditionError(absl::StrCat(
        path, ": its tables or the parts of its rows are not those of the deltas before"));
  }
  return s;
}

// 1 the header follows, 2 the whole file is sound (so that nothing is applied by halves), 3 its
// rows, 4 the hash. REQUIRES: nobody changes the file meanwhile.
absl::Status DeltaCopy::Apply(const std::string& path) {
  auto reader = storage::DeltaReader::Open(path);
  if (!reader.ok()) return reader.status();
  const storage::DeltaHeader& header = (*reader)->header();
  if (absl::Status s = CheckHeader(header, path); !s.ok()) return s;
  if (auto sound = storage::VerifyDelta(path); !sound.ok()) return sound.status();
  if (!at_) {
    with_state_ = header.with_state;
    tables_ = header.tables;
  }
  storage::DeltaBlock block;
  for (;;) {
    const auto more = (*reader)->Next(block);
    if (!more.ok()) return more.status();
    if (!*more) break;
    const size_t row_bytes = header.row_bytes(*header.Find(block.table));
    Rows& rows = rows_[block.table];
    for (size_t i = 0; i < block.keys.size(); ++i) {
      const Key key(block.keys[i]);
      if (const auto old = rows.find(key.value); old != rows.end()) {
        if (with_state_) hash_ -= storage::HashRow(block.table, key, old->second);
        if (block.rows == nullptr) rows.erase(old);
      }
      if (block.rows == nullptr) continue;
      const std::span<const uint8_t> row(block.rows + i * row_bytes, row_bytes);
      if (with_state_) hash_ += storage::HashRow(block.table, key, row);
      rows[key.value].assign(row.begin(), row.end());
    }
  }
  at_ = header.to;
  applied_.upserts += (*reader)->summary().upserts;
  applied_.deletes += (*reader)->summary().deletes;
  applied_.bytes += (*reader)->summary().bytes;
  if (with_state_ && header.all_tables && hash_ != header.to.hash) {
    return absl::DataLossError(absl::StrCat(path, ": the copy's rows hash to ", hash_.Hex(),
                                            " with it, not to ", header.to.hash.Hex()));
  }
  return absl::OkStatus();
}

}  // namespace strata

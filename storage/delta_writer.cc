#include <fcntl.h>

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/core/position.h"
#include "storage/delta_file.h"

namespace strata::storage {

DeltaWriter::DeltaWriter(DeltaHeader header, std::shared_ptr<const File> file, uint64_t offset)
    : header_(std::move(header)),
      file_(std::move(file)),
      offset_(offset),
      last_(header_.tables.size()) {}

absl::StatusOr<std::unique_ptr<DeltaWriter>> DeltaWriter::Create(const std::string& path,
                                                                 const DeltaHeader& header) {
  auto readable = ParseDeltaHeader(EncodeDeltaHeader(header));
  if (!readable.ok()) return readable.status();
  auto file = File::Open(path, O_WRONLY | O_CREAT | O_TRUNC);
  if (!file.ok()) return file.status();
  return At(std::make_shared<const File>(*std::move(file)), 0, header);
}

absl::StatusOr<std::unique_ptr<DeltaWriter>> DeltaWriter::At(std::shared_ptr<const File> file,
                                                             uint64_t offset,
                                                             const DeltaHeader& header) {
  const std::vector<uint8_t> bytes = EncodeDeltaHeader(header);
  auto writer = std::unique_ptr<DeltaWriter>(new DeltaWriter(header, std::move(file), offset));
  if (absl::Status s = writer->Write(bytes); !s.ok()) return s;
  return writer;
}

absl::Status DeltaWriter::Write(std::span<const uint8_t> bytes) {
  iovec part = {const_cast<uint8_t*>(bytes.data()), bytes.size()};
  if (absl::Status s = file_->WriteAt(offset_ + written_.bytes, {&part, 1}); !s.ok()) return s;
  written_.bytes += bytes.size();
  return absl::OkStatus();
}

absl::Status DeltaWriter::Begin(DeltaBlockType type, const DeltaTable& table) {
  if (type == type_ && &table == table_ && buffered_bytes() < kDeltaBlockBytes) {
    return absl::OkStatus();
  }
  if (absl::Status s = Flush(); !s.ok()) return s;
  type_ = type;
  table_ = &table;
  return absl::OkStatus();
}

absl::Status DeltaWriter::Flush() {
  if (keys_.empty()) return absl::OkStatus();
  std::vector<uint8_t> bytes(kDeltaBlockHead + keys_.size() * 8 + rows_.size());
  uint8_t* const payload = bytes.data() + kDeltaBlockHead;
  std::memcpy(payload, keys_.data(), keys_.size() * 8);
  if (!rows_.empty()) std::memcpy(payload + keys_.size() * 8, rows_.data(), rows_.size());
  DeltaBlockHead head;
  head.type = type_;
  head.table = table_->id.value;
  head.count = keys_.size();
  head.payload = bytes.size() - kDeltaBlockHead;
  head.offset = written_.bytes;
  EncodeDeltaBlockHead(head, std::span<const uint8_t>(bytes).subspan(kDeltaBlockHead),
                       bytes.data());
  if (absl::Status s = Write(bytes); !s.ok()) return s;
  keys_.clear();
  rows_.clear();
  return absl::OkStatus();
}

namespace {

absl::Status CheckAfter(std::optional<Position> last, TableId table, Position position) {
  if (!last || *last < position) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("delta: position ", position.value, " of table ",
                                                 table.value, " follows ", last->value));
}

Key KeyAt(const DeltaTable& table, Position position) {
  return table.kind == TableKind::kDense ? Key(position.value)
                                         : KeyOf(position, TableSalt(table.id));
}

}  // namespace

absl::Status DeltaWriter::Upsert(TableId table, Position position, std::span<const uint8_t> row) {
  const DeltaTable* t = header_.Find(table);
  if (t == nullptr || row.size() != header_.row_bytes(*t)) {
    return absl::InvalidArgumentError(
        absl::StrCat("delta: a row of ", row.size(), " bytes of table ", table.value));
  }
  Last& last = last_[static_cast<size_t>(t - header_.tables.data())];
  if (absl::Status s = CheckAfter(last.upsert, table, position); !s.ok()) return s;
  if (absl::Status s = Begin(DeltaBlockType::kUpserts, *t); !s.ok()) return s;
  last.upsert = position;
  keys_.push_back(KeyAt(*t, position).value);
  rows_.insert(rows_.end(), row.begin(), row.end());
  ++written_.upserts;
  return absl::OkStatus();
}

absl::Status DeltaWriter::Delete(TableId table, Position position) {
  const DeltaTable* t = header_.Find(table);
  if (t == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("delta: no table ", table.value));
  }
  Last& last = last_[static_cast<size_t>(t - header_.tables.data())];
  if (absl::Status s = CheckAfter(last.erased, table, position); !s.ok()) return s;
  if (absl::Status s = Begin(DeltaBlockType::kDeletes, *t); !s.ok()) return s;
  last.erased = position;
  keys_.push_back(KeyAt(*t, position).value);
  ++written_.deletes;
  return absl::OkStatus();
}

absl::StatusOr<DeltaSummary> DeltaWriter::End() {
  if (absl::Status s = Flush(); !s.ok()) return s;
  uint8_t end[kDeltaBlockHead + 16];
  std::memcpy(end + kDeltaBlockHead, &written_.upserts, 8);
  std::memcpy(end + kDeltaBlockHead + 8, &written_.deletes, 8);
  DeltaBlockHead head;
  head.payload = 16;
  head.offset = written_.bytes;
  EncodeDeltaBlockHead(head, std::span<const uint8_t>(end).subspan(kDeltaBlockHead), end);
  if (absl::Status s = Write(end); !s.ok()) return s;
  return written_;
}

absl::StatusOr<DeltaSummary> DeltaWriter::Finish() {
  auto written = End();
  if (!written.ok()) return written;
  if (absl::Status s = file_->Sync(); !s.ok()) return s;
  return written;
}

}  // namespace strata::storage

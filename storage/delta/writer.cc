#include <fcntl.h>

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/core/position.h"
#include "storage/delta/file.h"

namespace strata::storage {

DeltaWriter::DeltaWriter(DeltaHeader header, std::shared_ptr<const File> file, uint64_t offset)
    : header_(std::move(header)),
      file_(std::move(file)),
      offset_(offset),
      last_(header_.tables.size()) {}

absl::StatusOr<std::unique_ptr<DeltaWriter>> DeltaWriter::Create(const std::string& path,
                                                                 const DeltaHeader& header,
                                                                 FileSystem& files) {
  auto readable = ParseDeltaHeader(EncodeDeltaHeader(header));
  if (!readable.ok()) return readable.status();
  auto file = File::Open(path, O_WRONLY | O_CREAT | O_TRUNC, files);
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

// Makes room for a key of `block`.
absl::Status DeltaWriter::Begin(const DeltaTable& table, DeltaBlockType type, Pending& block) {
  if (&table != table_) {
    if (absl::Status s = Flush(); !s.ok()) return s;
    table_ = &table;
  }
  return block.bytes() < kDeltaBlockBytes ? absl::OkStatus() : WriteBlock(type, block);
}

absl::Status DeltaWriter::Flush() {
  if (absl::Status s = WriteBlock(DeltaBlockType::kUpserts, upserts_); !s.ok()) return s;
  return WriteBlock(DeltaBlockType::kDeletes, deletes_);
}

absl::Status DeltaWriter::WriteBlock(DeltaBlockType type, Pending& block) {
  if (block.keys.empty()) return absl::OkStatus();
  std::vector<uint8_t> bytes(kDeltaBlockHead + block.bytes());
  uint8_t* const payload = bytes.data() + kDeltaBlockHead;
  std::memcpy(payload, block.keys.data(), block.keys.size() * 8);
  if (!block.rows.empty()) {
    std::memcpy(payload + block.keys.size() * 8, block.rows.data(), block.rows.size());
  }
  DeltaBlockHead head;
  head.type = type;
  head.table = table_->id.value;
  head.count = block.keys.size();
  head.payload = block.bytes();
  head.offset = written_.bytes;
  EncodeDeltaBlockHead(head, std::span<const uint8_t>(bytes).subspan(kDeltaBlockHead),
                       bytes.data());
  if (absl::Status s = Write(bytes); !s.ok()) return s;
  block.keys.clear();
  block.rows.clear();
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
  if (absl::Status s = Begin(*t, DeltaBlockType::kUpserts, upserts_); !s.ok()) return s;
  last.upsert = position;
  upserts_.keys.push_back(KeyAt(*t, position).value);
  upserts_.rows.insert(upserts_.rows.end(), row.begin(), row.end());
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
  if (absl::Status s = Begin(*t, DeltaBlockType::kDeletes, deletes_); !s.ok()) return s;
  last.erased = position;
  deletes_.keys.push_back(KeyAt(*t, position).value);
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
  if (!sync_failed_.ok()) return sync_failed_;
  auto written = End();
  if (!written.ok()) return written;
  sync_failed_ = file_->Sync();
  if (!sync_failed_.ok()) return sync_failed_;
  return written;
}

}  // namespace strata::storage

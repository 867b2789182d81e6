#include <fcntl.h>

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/core/position.h"
#include "storage/delta/file.h"

namespace strata::storage {
namespace {

std::string Text(const DeltaPoint& p) {
  return absl::StrCat("step ", p.step, " (rows ", p.hash.Hex(), ")");
}

}  // namespace

absl::StatusOr<std::unique_ptr<DeltaReader>> DeltaReader::Open(const std::string& path) {
  auto file = File::Open(path, O_RDONLY);
  if (!file.ok()) return file.status();
  const auto bytes = file->Size();
  if (!bytes.ok()) return bytes.status();
  auto shared = std::make_shared<File>(*std::move(file));
  return From(
      [shared](uint64_t offset, std::span<uint8_t> out) { return shared->ReadAt(offset, out); },
      *bytes, path);
}

absl::StatusOr<std::unique_ptr<DeltaReader>> DeltaReader::From(Source source, uint64_t bytes,
                                                               std::string name, DeltaTail tail) {
  std::vector<uint8_t> head(kDeltaFixedBytes);
  if (bytes < head.size()) return DamagedFile(name, 0, "too short for a delta");
  if (absl::Status s = source(0, head); !s.ok()) return s;
  const auto size = DeltaHeaderBytes(head);
  if (!size || *size > bytes) return DamagedFile(name, 0, "this is no delta");
  head.resize(*size);
  if (absl::Status s = source(0, head); !s.ok()) return s;
  auto header = ParseDeltaHeader(head);
  if (!header.ok()) return DamagedFile(name, 0, header.status().message());
  return std::unique_ptr<DeltaReader>(
      new DeltaReader(std::move(source), bytes, std::move(name), *std::move(header), *size, tail));
}

DeltaReader::DeltaReader(Source source, uint64_t bytes, std::string name, DeltaHeader header,
                         uint64_t at, DeltaTail tail)
    : source_(std::move(source)),
      bytes_(bytes),
      name_(std::move(name)),
      header_(std::move(header)),
      tail_(tail),
      at_(at),
      last_(header_.tables.size() * 2) {}

absl::Status DeltaReader::Damaged(uint64_t offset, const std::string& what) const {
  return DamagedFile(name_, offset, what);
}

// Before the payload is read: sizes are within bounds, whatever the bytes say.
absl::Status DeltaReader::CheckBlock(const DeltaBlockHead& head, uint64_t at) {
  if (head.offset != at) return Damaged(at, "a block of another place");
  if (absl::Status s = CheckSize(head, at); !s.ok()) return s;
  if (head.payload <= bytes_ - at - kDeltaBlockHead) return absl::OkStatus();
  cut_off_ = true;
  return Damaged(at, "a block beyond the file's end");
}

absl::Status DeltaReader::CheckSize(const DeltaBlockHead& head, uint64_t at) const {
  if (head.payload > kDeltaMostPayload) return Damaged(at, "a block that is too long");
  if (head.type == DeltaBlockType::kEnd) {
    return head.payload == 16 ? absl::OkStatus() : Damaged(at, "an end of a wrong size");
  }
  const DeltaTable* table = header_.Find(TableId(head.table));
  if (table == nullptr) return Damaged(at, "a block of an unknown table");
  const uint64_t each = 8 + (head.type == DeltaBlockType::kUpserts ? header_.row_bytes(*table) : 0);
  if (head.count == 0 || head.count != head.payload / each || head.payload % each != 0) {
    return Damaged(at, "a block whose size is not that of its rows");
  }
  return absl::OkStatus();
}

absl::Status DeltaReader::CheckOrder(const DeltaBlockHead& head, uint64_t at) {
  const DeltaTable* table = header_.Find(TableId(head.table));
  const auto index = static_cast<size_t>(table - header_.tables.data());
  std::optional<Position>& last = last_[index * 2 + (head.type == DeltaBlockType::kDeletes)];
  const uint64_t salt = TableSalt(table->id);
  for (const uint64_t key : keys_) {
    const Position p =
        table->kind == TableKind::kDense ? Position(key) : PositionOf(Key(key), salt);
    if (last && !(*last < p)) return Damaged(at, "keys out of order");
    last = p;
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> DeltaReader::End(const DeltaBlockHead& head, uint64_t at) {
  if (keys_[0] != read_.upserts || keys_[1] != read_.deletes) {
    return Damaged(at, "the end counts other rows than were read");
  }
  const uint64_t end = at + kDeltaBlockHead + head.payload;
  if (tail_ == DeltaTail::kNothing && end != bytes_) return Damaged(at, "bytes behind the end");
  ended_ = true;
  read_.bytes = end;
  return false;
}

absl::StatusOr<bool> DeltaReader::Next(DeltaBlock& block) {
  if (ended_) return false;
  const uint64_t at = at_;
  uint8_t bytes[kDeltaBlockHead];
  if (bytes_ - at < sizeof bytes) {
    cut_off_ = true;
    return Damaged(at, "the file was cut off");
  }
  if (absl::Status s = source_(at, bytes); !s.ok()) return s;
  const auto head = ParseDeltaBlockHead(bytes);
  if (!head) return Damaged(at, "no block begins here");
  if (absl::Status s = CheckBlock(*head, at); !s.ok()) return s;
  const bool upserts = head->type == DeltaBlockType::kUpserts;
  const uint64_t keys = head->type == DeltaBlockType::kEnd ? 2 : head->count;
  const uint64_t row_bytes = head->payload - keys * 8;
  keys_.resize(keys);
  rows_.resize((row_bytes + 7) / 8);
  const std::span<uint8_t> key_bytes(reinterpret_cast<uint8_t*>(keys_.data()), keys * 8);
  const std::span<uint8_t> rows(reinterpret_cast<uint8_t*>(rows_.data()), row_bytes);
  if (absl::Status s = source_(at + kDeltaBlockHead, key_bytes); !s.ok()) return s;
  if (upserts) {
    if (absl::Status s = source_(at + kDeltaBlockHead + key_bytes.size(), rows); !s.ok()) return s;
  }
  if (DeltaBlockCrc(bytes, key_bytes, rows) != head->crc) {
    return Damaged(at, "a block's checksum is wrong");
  }
  if (head->type == DeltaBlockType::kEnd) return End(*head, at);
  if (absl::Status s = CheckOrder(*head, at); !s.ok()) return s;
  at_ = at + kDeltaBlockHead + head->payload;
  (upserts ? read_.upserts : read_.deletes) += keys;
  block = {head->type, TableId(head->table), keys_, upserts ? rows.data() : nullptr};
  return true;
}

absl::StatusOr<DeltaSummary> VerifyDelta(const std::string& path) {
  auto reader = DeltaReader::Open(path);
  if (!reader.ok()) return reader.status();
  DeltaBlock block;
  for (;;) {
    auto more = (*reader)->Next(block);
    if (!more.ok()) return more.status();
    if (!*more) return (*reader)->summary();
  }
}

absl::Status CheckFollows(const DeltaHeader& delta, const std::optional<DeltaPoint>& at) {
  if (delta.removals) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the delta names the rows that life-cycle rules removed up to step ", delta.to.step,
        ", and not what else changed: no copy is brought up to date "
        "with it"));
  }
  if (delta.whole) {
    if (!at) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat("the delta holds a whole model of ",
                                                      Text(delta.to), ", and the copy is at ",
                                                      Text(*at), ": begin with an empty copy"));
  }
  if (!at) {
    return absl::FailedPreconditionError(
        absl::StrCat("the delta goes from ", Text(delta.from), " to ", Text(delta.to),
                     ", and the copy is empty: apply a whole model first"));
  }
  if (delta.from == *at) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the delta goes from ", Text(delta.from), " to ", Text(delta.to),
                   ", and the copy is at ", Text(*at), ": one between is missing, or was applied"));
}

}  // namespace strata::storage

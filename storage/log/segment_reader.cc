#include "storage/log/segment_reader.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <utility>

namespace strata::storage {

using log::kRecordHeaderBytes;

absl::StatusOr<SegmentReader> SegmentReader::Open(const std::string& path, uint64_t segment,
                                                  uint64_t size, FileSystem& files) {
  auto file = File::Open(path, O_RDONLY, files);
  if (!file.ok()) return file.status();
  SegmentReader reader(*std::move(file), path, size);
  if (size < log::kSegmentHeaderBytes) return DamagedFile(path, size, "the segment is cut off");
  std::array<uint8_t, log::kSegmentHeaderBytes> bytes;
  if (absl::Status s = reader.file_.ReadAt(0, bytes); !s.ok()) return s;
  const auto header = log::DecodeSegmentHeader(bytes.data());
  if (!header || header->segment != segment) {
    return DamagedFile(path, 0, "the segment's header does not check");
  }
  reader.header_ = *header;
  return reader;
}

absl::StatusOr<std::span<const uint8_t>> SegmentReader::Window(uint64_t offset, uint64_t bytes) {
  if (offset < begin_ || offset + bytes > begin_ + length_) {
    const uint64_t length = std::min(size_ - offset, std::max<uint64_t>(bytes, kWindowBytes));
    length_ = 0;
    if (memory_.size() * 8 < length) memory_.resize((length + 7) / 8);
    const std::span<uint8_t> in(reinterpret_cast<uint8_t*>(memory_.data()), length);
    if (absl::Status s = file_.ReadAt(offset, in); !s.ok()) return s;
    begin_ = offset;
    length_ = length;
  }
  const std::span<const uint8_t> window(reinterpret_cast<const uint8_t*>(memory_.data()), length_);
  return window.subspan(offset - begin_);
}

absl::StatusOr<bool> SegmentReader::Read(uint64_t& offset, const log::RecordFilter& wanted,
                                         const Taker& take) {
  const auto damaged = [&] {
    return DamagedFile(path_, offset, "a record of the update log does not check");
  };
  offset = std::max(offset, log::FirstRecord(header_.alignment));
  while (offset < size_) {
    const LogPosition at{header_.segment, offset};
    if (size_ - offset < kRecordHeaderBytes) return damaged();
    auto bytes = Window(offset, kRecordHeaderBytes);
    if (!bytes.ok()) return bytes.status();
    const auto record = log::DecodeRecordHeader(at, bytes->data());
    // Compared without adding: a length may be any number.
    if (!record || record->payload.bytes > size_) return damaged();
    const uint64_t all = log::RecordBytes(record->payload.bytes, header_.alignment);
    if (all > size_ - offset) return damaged();
    if (wanted != nullptr && !wanted(record->header)) {
      offset += all;
      continue;
    }
    bytes = Window(offset, all);
    if (!bytes.ok()) return bytes.status();
    const auto view = log::CheckPayload(at, *record, bytes->first(all));
    if (!view) return damaged();
    const auto more = take(*view);
    if (!more.ok()) return more.status();
    offset += all;
    if (!*more) return false;
  }
  return true;
}

}  // namespace strata::storage

#include "storage/log/segment_writer.h"

#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace strata::storage {
namespace {

bool IsWholeBlocks(const iovec& part) {
  return reinterpret_cast<uintptr_t>(part.iov_base) % SegmentWriter::kBlock == 0 &&
         part.iov_len % SegmentWriter::kBlock == 0;
}

}  // namespace

absl::StatusOr<SegmentWriter> SegmentWriter::Create(const std::string& path, WriteMode mode,
                                                    FileSystem& files) {
  SegmentWriter writer;
  absl::StatusOr<File> file = File::Open(path, O_RDWR | O_CREAT | O_EXCL, files);
  if (!file.ok()) return file.status();
  writer.file_ = *std::move(file);
  if (mode == WriteMode::kDirect) {
    absl::StatusOr<File> direct = File::Open(path, O_RDWR | O_DIRECT, files);
    if (direct.ok()) {
      writer.file_ = *std::move(direct);
      writer.mode_ = WriteMode::kDirect;
    }
  }
  return writer;
}

absl::StatusOr<SegmentWriter> SegmentWriter::Open(const std::string& path, uint64_t end,
                                                  FileSystem& files) {
  SegmentWriter writer;
  absl::StatusOr<File> file = File::Open(path, O_RDWR, files);
  if (!file.ok()) return file.status();
  writer.file_ = *std::move(file);
  writer.end_ = end;
  return writer;
}

absl::Status SegmentWriter::Trim() {
  if (absl::Status s = file_.Truncate(end_); !s.ok()) return s;
  torn_ = false;
  return absl::OkStatus();
}

absl::Status SegmentWriter::Sync() { return file_.SyncData(); }

void SegmentWriter::Abandon(uint64_t end) { end_ = end; }

void SegmentWriter::Forget() const { (void)posix_fadvise(file_.fd(), 0, 0, POSIX_FADV_DONTNEED); }

absl::Status SegmentWriter::Append(std::span<iovec> parts) {
  if (torn_) {
    if (absl::Status s = Trim(); !s.ok()) return s;
  }
  uint64_t bytes = 0;
  for (const iovec& part : parts) bytes += part.iov_len;
  const bool copy =
      mode_ == WriteMode::kDirect && !std::all_of(parts.begin(), parts.end(), IsWholeBlocks);
  const absl::Status written = copy ? AppendDirect(parts) : file_.WriteAt(end_, parts);
  if (!written.ok()) {
    torn_ = true;
    (void)Trim();  // where it fails, the next append tries again
    return written;
  }
  end_ += bytes;
  return absl::OkStatus();
}

// Copies the parts into the staging memory and writes it whenever it is full.
absl::Status SegmentWriter::AppendDirect(std::span<iovec> parts) {
  if (staging_.size() == 0) {
    absl::StatusOr<HugeMemory> memory = HugeMemory::Allocate(kStagingBytes, PageUse::kHuge);
    if (!memory.ok()) return memory.status();
    staging_ = *std::move(memory);
  }
  uint64_t at = end_;
  size_t held = 0;
  const auto write = [&] {
    iovec all = {staging_.data(), held};
    absl::Status s = file_.WriteAt(at, {&all, 1});
    at += held;
    held = 0;
    return s;
  };
  for (const iovec& part : parts) {
    const auto* from = static_cast<const uint8_t*>(part.iov_base);
    for (size_t left = part.iov_len; left > 0;) {
      const size_t take = std::min(left, kStagingBytes - held);
      std::memcpy(staging_.data() + held, from, take);
      held += take;
      from += take;
      left -= take;
      if (held < kStagingBytes) continue;
      if (absl::Status s = write(); !s.ok()) return s;
    }
  }
  return held == 0 ? absl::OkStatus() : write();
}

}  // namespace strata::storage

#include "storage/segment_writer.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace strata::storage {
namespace {

// Alignment of memory, place and length that every device accepts.
constexpr size_t kBlock = 4096;

}  // namespace

void SegmentWriter::Free::operator()(uint8_t* p) const { std::free(p); }

absl::StatusOr<SegmentWriter> SegmentWriter::Create(const std::string& path, WriteMode mode) {
  SegmentWriter writer;
  absl::StatusOr<File> file = File::Open(path, O_RDWR | O_CREAT | O_EXCL);
  if (!file.ok()) return file.status();
  writer.file_ = *std::move(file);
  if (mode == WriteMode::kDirect) {
    absl::StatusOr<File> direct = File::Open(path, O_RDWR | O_DIRECT);
    writer.staging_.reset(static_cast<uint8_t*>(std::aligned_alloc(kBlock, kStagingBytes)));
    if (direct.ok() && writer.staging_ != nullptr) {
      writer.file_ = *std::move(direct);
      writer.mode_ = WriteMode::kDirect;
    }
  }
  return writer;
}

absl::StatusOr<SegmentWriter> SegmentWriter::Open(const std::string& path, uint64_t end) {
  SegmentWriter writer;
  absl::StatusOr<File> file = File::Open(path, O_RDWR);
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

absl::Status SegmentWriter::Append(std::span<iovec> parts) {
  if (torn_) {
    if (absl::Status s = Trim(); !s.ok()) return s;
  }
  uint64_t bytes = 0;
  for (const iovec& part : parts) bytes += part.iov_len;
  const absl::Status written =
      mode_ == WriteMode::kDirect ? AppendDirect(parts) : file_.WriteAt(end_, parts);
  if (!written.ok()) {
    torn_ = true;
    (void)Trim();  // where it fails, the next append tries again
    return written;
  }
  end_ += bytes;
  return absl::OkStatus();
}

// Fills the staging memory behind the partial block it begins with, and writes it whenever it is
// full; at the end padded to a whole block. The new partial block is kept only when all is written.
absl::Status SegmentWriter::AppendDirect(std::span<iovec> parts) {
  uint64_t at = end_ / kBlock * kBlock;
  size_t held = end_ - at;
  std::array<uint8_t, kBlock> partial;  // as it was, for a failure
  std::memcpy(partial.data(), staging_.get(), held);
  const size_t held_before = held;
  const auto write = [&](size_t bytes) {
    iovec all = {staging_.get(), bytes};
    return file_.WriteAt(at, {&all, 1});
  };
  for (const iovec& part : parts) {
    const auto* from = static_cast<const uint8_t*>(part.iov_base);
    for (size_t left = part.iov_len; left > 0;) {
      const size_t take = std::min(left, kStagingBytes - held);
      std::memcpy(staging_.get() + held, from, take);
      held += take;
      from += take;
      left -= take;
      if (held < kStagingBytes) continue;
      if (absl::Status s = write(held); !s.ok()) {
        std::memcpy(staging_.get(), partial.data(), held_before);
        return s;
      }
      at += held;
      held = 0;
    }
  }
  const size_t padded = (held + kBlock - 1) / kBlock * kBlock;
  std::memset(staging_.get() + held, 0, padded - held);
  if (padded > 0) {
    if (absl::Status s = write(padded); !s.ok()) {
      std::memcpy(staging_.get(), partial.data(), held_before);
      return s;
    }
  }
  const size_t whole = held / kBlock * kBlock;
  std::memmove(staging_.get(), staging_.get() + whole, held - whole);
  return absl::OkStatus();
}

}  // namespace strata::storage

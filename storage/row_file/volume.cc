#include "storage/row_file/volume.h"

#include <fcntl.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace strata::storage::row_file {
namespace {

constexpr uint32_t kGrowChunks = 64;  // at least, so that the file grows in pieces of 1 MiB

}  // namespace

PageMemory AllocatePages(size_t bytes) {
  const size_t pages = (bytes + kPageBytes - 1) / kPageBytes;
  return PageMemory(static_cast<uint8_t*>(
      std::aligned_alloc(kPageBytes, std::max<size_t>(1, pages) * kPageBytes)));
}

absl::StatusOr<std::unique_ptr<Volume>> Volume::Open(const std::string& path, FileSystem& files) {
  absl::StatusOr<File> file = File::Open(path, O_RDWR | O_CREAT | O_DIRECT, files);
  if (!file.ok()) {  // a file system without direct IO says EINVAL
    file = File::Open(path, O_RDWR | O_CREAT, files);
  }
  if (!file.ok()) return file.status();
  absl::StatusOr<uint64_t> size = file->Size();
  if (!size.ok()) return size.status();
  auto volume = std::unique_ptr<Volume>(new Volume(*std::move(file)));
  MutexLock lock(&volume->mu_);
  volume->used_.resize(*size / kChunkBytes, false);
  volume->free_ = static_cast<uint32_t>(volume->used_.size());
  return volume;
}

absl::Status Volume::Grow(uint32_t chunks) {
  const uint64_t begin = used_.size() * kChunkBytes;
  for (uint32_t n : {std::max(chunks, kGrowChunks), chunks}) {
    const absl::Status reserved = file_.Reserve(begin, n * kChunkBytes);
    if (reserved.ok()) {
      used_.resize(used_.size() + n, false);
      free_ += n;
      return absl::OkStatus();
    }
    if (n == chunks) return reserved;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ChunkRun>> Volume::Allocate(uint32_t chunks) {
  MutexLock lock(&mu_);
  if (free_ < chunks) {
    if (absl::Status s = Grow(chunks - free_); !s.ok()) return s;
  }
  std::vector<ChunkRun> runs;
  size_t i = lowest_;
  for (uint32_t left = chunks; left > 0; ++i) {
    if (used_[i]) continue;
    used_[i] = true;
    --left;
    if (!runs.empty() && runs.back().first + runs.back().count == i) {
      ++runs.back().count;
    } else {
      runs.push_back({static_cast<uint32_t>(i), 1});
    }
  }
  lowest_ = i;
  free_ -= chunks;
  return runs;
}

absl::Status Volume::Claim(const std::vector<ChunkRun>& runs) {
  MutexLock lock(&mu_);
  for (const ChunkRun& run : runs) {
    for (uint64_t c = run.first; c < uint64_t{run.first} + run.count; ++c) {
      if (c >= used_.size()) return DamagedFile(path(), c * kChunkBytes, "the file ends too early");
      if (used_[c]) return DamagedFile(path(), c * kChunkBytes, "a chunk with two owners");
      used_[c] = true;
      --free_;
    }
  }
  return absl::OkStatus();
}

void Volume::Free(const std::vector<ChunkRun>& runs) {
  MutexLock lock(&mu_);
  for (const ChunkRun& run : runs) {
    for (uint32_t c = run.first; c < run.first + run.count; ++c) used_[c] = false;
    free_ += run.count;
    lowest_ = std::min<size_t>(lowest_, run.first);
  }
}

void Volume::Retire(std::vector<ChunkRun> runs) {
  MutexLock lock(&mu_);
  retired_.insert(retired_.end(), runs.begin(), runs.end());
}

std::vector<ChunkRun> Volume::TakeRetired() {
  MutexLock lock(&mu_);
  return std::exchange(retired_, {});
}

absl::Status Volume::Read(uint64_t offset, std::span<uint8_t> bytes) const {
  return file_.ReadAt(offset, bytes);
}

absl::Status Volume::Write(uint64_t offset, std::span<const uint8_t> bytes) {
  iovec part = {const_cast<uint8_t*>(bytes.data()), bytes.size()};
  absl::Status s = file_.WriteAt(offset, {&part, 1});
  if (s.ok()) written_.fetch_add(bytes.size(), std::memory_order_relaxed);
  return s;
}

absl::Status Volume::Sync() const { return file_.SyncData(); }

uint64_t Volume::file_bytes() const {
  MutexLock lock(&mu_);
  return used_.size() * kChunkBytes;
}

}  // namespace strata::storage::row_file

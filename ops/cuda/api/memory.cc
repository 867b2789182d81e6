#include "ops/cuda/api/memory.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ops/cuda/api/mutex.h"

namespace strata::ops::gpu {
namespace {

constexpr size_t kAlignment = 256;  // what cudaMalloc promises

size_t RoundUp(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

class ArenaImpl : public Arena {
 public:
  ArenaImpl(CudaApi* api, MemoryKind kind, char* base, size_t bytes, absl::string_view name)
      : api_(api), kind_(kind), base_(base), total_(bytes), name_(name) {
    if (bytes > 0) gaps_.emplace(0, bytes);
  }

  ~ArenaImpl() override {
    // The process or the device is at its end: nobody is left to hear what this answers.
    if (base_ != nullptr) {
      (void)(kind_ == MemoryKind::kDevice ? api_->Free(base_) : api_->FreeHost(base_));
    }
  }

  absl::StatusOr<Buffer> Allocate(size_t bytes) override {
    MutexLock lock(&mu_);
    const size_t size = RoundUp(std::max<size_t>(bytes, 1));
    // RoundUp of a size near the largest number is 0.
    for (auto gap = gaps_.begin(); size >= bytes && gap != gaps_.end(); ++gap) {
      if (gap->second < size) continue;
      const size_t at = gap->first;
      const size_t rest = gap->second - size;
      gaps_.erase(gap);
      if (rest > 0) gaps_.emplace(at + size, rest);
      used_.emplace(at, size);
      return MakeBuffer(base_ + at, bytes);
    }
    size_t largest = 0;
    for (const auto& [at, gap] : gaps_) largest = std::max(largest, gap);
    return absl::ResourceExhaustedError(
        absl::StrCat(name_, ": ", bytes, " bytes requested, ", FreeBytes(), " of ", total_,
                     " bytes free, the largest piece ", largest, " bytes; give it more bytes"));
  }

  CudaApi* api() const override { return api_; }
  size_t total_bytes() const override { return total_; }
  size_t free_bytes() const override {
    MutexLock lock(&mu_);
    return FreeBytes();
  }

 protected:
  void Free(void* data) override {
    MutexLock lock(&mu_);
    const auto piece = used_.find(static_cast<size_t>(static_cast<char*>(data) - base_));
    size_t at = piece->first, size = piece->second;
    used_.erase(piece);
    const auto after = gaps_.lower_bound(at);
    if (after != gaps_.begin()) {
      const auto before = std::prev(after);
      if (before->first + before->second == at) {
        at = before->first;
        size += before->second;
        gaps_.erase(before);
      }
    }
    if (after != gaps_.end() && at + size == after->first) {
      size += after->second;
      gaps_.erase(after);
    }
    gaps_.emplace(at, size);
  }

 private:
  size_t FreeBytes() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    size_t bytes = 0;
    for (const auto& [at, gap] : gaps_) bytes += gap;
    return bytes;
  }

  CudaApi* const api_;
  const MemoryKind kind_;
  char* const base_;
  const size_t total_;
  const std::string name_;

  mutable Mutex mu_;
  // By offset: bytes. No two gaps touch.
  std::map<size_t, size_t> gaps_ ABSL_GUARDED_BY(mu_);
  std::map<size_t, size_t> used_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

Buffer::~Buffer() {
  if (arena_ != nullptr) arena_->Free(data_);
}

Buffer Arena::MakeBuffer(void* data, size_t bytes) {
  Buffer buffer;
  buffer.arena_ = this;
  buffer.data_ = data;
  buffer.bytes_ = bytes;
  return buffer;
}

absl::StatusOr<std::unique_ptr<Arena>> Arena::Create(CudaApi* api, MemoryKind kind, size_t bytes,
                                                     absl::string_view name) {
  bytes = bytes / kAlignment * kAlignment;
  void* base = nullptr;
  if (bytes > 0) {
    const absl::Status status =
        kind == MemoryKind::kDevice ? api->Malloc(bytes, &base) : api->MallocHost(bytes, &base);
    if (absl::IsResourceExhausted(status) && kind == MemoryKind::kDevice) {
      size_t free_bytes = 0, total_bytes = 0;
      const absl::Status asked = api->MemoryInfo(&free_bytes, &total_bytes);
      return absl::ResourceExhaustedError(absl::StrCat(
          name, ": ", bytes, " bytes requested, ",
          asked.ok() ? absl::StrCat(free_bytes, " of ", total_bytes) : std::string("unknown"),
          " bytes free on ", api->properties().name, ": ", status.message()));
    }
    if (!status.ok()) {
      const absl::Status told(
          status.code(), absl::StrCat(name, ": ", bytes, " bytes requested: ", status.message()));
      return IsDeviceLost(status) ? DeviceLost(told) : told;
    }
  }
  return std::make_unique<ArenaImpl>(api, kind, static_cast<char*>(base), bytes, name);
}

absl::Status LateBuffer::Take() {
  if (taken()) return absl::OkStatus();
  auto arena = Arena::Create(api_, kind_, ArenaBytes(bytes_), name_);
  if (!arena.ok()) return arena.status();
  auto buffer = (*arena)->Allocate(bytes_);
  if (!buffer.ok()) return buffer.status();
  arena_ = *std::move(arena);
  buffer_ = *std::move(buffer);
  return absl::OkStatus();
}

}  // namespace strata::ops::gpu

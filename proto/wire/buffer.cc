#include "proto/wire/buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/core/mutex.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#endif
#endif
#ifndef ASAN_POISON_MEMORY_REGION
#define ASAN_POISON_MEMORY_REGION(at, size) (static_cast<void>(at), static_cast<void>(size))
#define ASAN_UNPOISON_MEMORY_REGION(at, size) (static_cast<void>(at), static_cast<void>(size))
#endif

namespace strata {
namespace {

constexpr size_t kAlignment = 64;
constexpr int kMinShift = 12;  // 4 KiB
constexpr int kMaxShift = 26;  // 64 MiB
constexpr int kClasses = kMaxShift - kMinShift + 1;
constexpr size_t kHugePage = size_t{2} << 20;

// REQUIRES: 1 <= size <= 2^kMaxShift.
int ClassOf(size_t size) {
  const int shift = std::bit_width(size - 1);
  return shift <= kMinShift ? 0 : shift - kMinShift;
}

size_t ClassBytes(int size_class) { return size_t{1} << (size_class + kMinShift); }

uint8_t* Allocate(size_t bytes) {
  const size_t alignment = bytes >= kHugePage ? kHugePage : kAlignment;
  const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* block = std::aligned_alloc(alignment, rounded);
  if (block == nullptr) throw std::bad_alloc();
  // A refusal costs only speed.
  if (bytes >= kHugePage) static_cast<void>(madvise(block, rounded, MADV_HUGEPAGE));
  return static_cast<uint8_t*>(block);
}

std::atomic<BlockSource*> block_source{nullptr};

uint8_t* TakeBlock(size_t bytes) {
  BlockSource* const source = block_source.load(std::memory_order_acquire);
  if (source != nullptr && bytes >= BlockSource::kSourceBytes) {
    if (void* block = source->Take(bytes)) return static_cast<uint8_t*>(block);
  }
  return Allocate(bytes);
}

void FreeBlock(uint8_t* block) {
  BlockSource* const source = block_source.load(std::memory_order_acquire);
  if (source == nullptr || !source->Give(block)) std::free(block);
}

// Freed blocks by class. Thread-safe; lives for the whole process, because buffers may die after
// main's statics.
class Pool {
 public:
  static Pool& Get() {
    static Pool& pool = *new Pool;
    return pool;
  }

  // A block of `size_class`, or a free one of the class above, which it becomes: messages whose
  // sizes lie on both sides of a power of two then do not need a block of either class.
  uint8_t* Take(int& size_class) {
    for (int at = size_class; at <= std::min(size_class + 1, kClasses - 1); ++at) {
      FreeList& list = lists_[at];
      MutexLock lock(&list.mu);
      if (list.blocks.empty()) continue;
      uint8_t* block = list.blocks.back();
      list.blocks.pop_back();
      pooled_bytes_.fetch_sub(ClassBytes(at), std::memory_order_relaxed);
      reused_.fetch_add(1, std::memory_order_relaxed);
      size_class = at;
      return block;
    }
    allocated_.fetch_add(1, std::memory_order_relaxed);
    return TakeBlock(ClassBytes(size_class));
  }

  void Give(int size_class, uint8_t* block) {
    const size_t bytes = ClassBytes(size_class);
    // Reserve first, so that racing threads never pass the bound together.
    if (pooled_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes >
        BufferBuilder::kMaxPooledBytes) {
      pooled_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
      ASAN_UNPOISON_MEMORY_REGION(block, bytes);
      FreeBlock(block);
      return;
    }
    ASAN_POISON_MEMORY_REGION(block, bytes);
    FreeList& list = lists_[size_class];
    MutexLock lock(&list.mu);
    list.blocks.push_back(block);
  }

  BufferPoolCounters counters() const {
    return {pooled_bytes_.load(std::memory_order_relaxed), reused_.load(std::memory_order_relaxed),
            allocated_.load(std::memory_order_relaxed)};
  }

 private:
  struct FreeList {
    Mutex mu;
    std::vector<uint8_t*> blocks ABSL_GUARDED_BY(mu);
  };

  std::array<FreeList, kClasses> lists_;
  std::atomic<size_t> pooled_bytes_{0};
  std::atomic<uint64_t> reused_{0};
  std::atomic<uint64_t> allocated_{0};
};

}  // namespace

void SetBlockSource(BlockSource* source) { block_source.store(source, std::memory_order_release); }

BufferPoolCounters GetBufferPoolCounters() { return Pool::Get().counters(); }

Buffer Buffer::With(std::shared_ptr<const DeviceValues> values) const {
  Buffer both = *this;
  both.device_values_ = std::move(values);
  return both;
}

Buffer Buffer::Slice(size_t offset, size_t size) const {
  Buffer part;
  part.owner_ = owner_;
  part.data_ = data_ + offset;
  part.size_ = size;
  return part;
}

Buffer Buffer::CopyOf(std::span<const uint8_t> bytes) {
  BufferBuilder builder(bytes.size());
  if (!bytes.empty()) std::memcpy(builder.data(), bytes.data(), bytes.size());
  return builder.Finish();
}

Buffer Buffer::Wrap(std::shared_ptr<const void> owner, std::span<const uint8_t> bytes) {
  Buffer buffer;
  buffer.owner_ = std::move(owner);
  buffer.data_ = bytes.data();
  buffer.size_ = bytes.size();
  return buffer;
}

BufferBuilder::BufferBuilder(size_t size) : size_(size) {
  if (size == 0) return;
  if (size <= ClassBytes(0) / 2 || size > ClassBytes(kClasses - 1)) {
    // Small ones are what malloc is good at; bigger ones are no messages.
    data_ = Allocate(size);
    owner_ = std::shared_ptr<void>(data_, [](void* block) { std::free(block); });
    return;
  }
  int size_class = ClassOf(size);
  data_ = Pool::Get().Take(size_class);
  ASAN_UNPOISON_MEMORY_REGION(data_, size);
  ASAN_POISON_MEMORY_REGION(data_ + size, ClassBytes(size_class) - size);
  owner_ = std::shared_ptr<void>(data_, [size_class](void* block) {
    Pool::Get().Give(size_class, static_cast<uint8_t*>(block));
  });
}

absl::StatusOr<BufferBuilder> BufferBuilder::Make(size_t size) {
  try {
    return BufferBuilder(size);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the system has no ", size, " bytes of memory for a message; make requests ",
                     "smaller, or give the process more memory"));
  }
}

Buffer BufferBuilder::Finish(size_t used) {
  Buffer buffer;
  buffer.owner_ = std::move(owner_);
  buffer.data_ = std::exchange(data_, nullptr);
  buffer.size_ = used;
  size_ = 0;
  return buffer;
}

}  // namespace strata

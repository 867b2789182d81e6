// Memory of a device and pinned memory of its host: one piece of each is taken from the runtime
// when a table or a job begins, and what it always needs lives in it; what it may never need comes
// in pieces of their own, when it does. A steady step so never allocates.
#ifndef STRATA_OPS_CUDA_API_MEMORY_H_
#define STRATA_OPS_CUDA_API_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ops/cuda/api/api.h"

namespace strata::ops::gpu {

enum class MemoryKind : uint8_t { kDevice, kPinned };

// What a buffer of that many bytes takes of an arena.
constexpr size_t ArenaBytes(size_t bytes) { return bytes == 0 ? 256 : (bytes + 255) / 256 * 256; }

class Arena;

// A piece of an arena, given back when destroyed. Its owner first waits for the work that uses it.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept { Swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer taken(std::move(other));
    Swap(taken);
    return *this;
  }
  ~Buffer();

  size_t bytes() const { return bytes_; }  // as asked for
  // The first of bytes() / sizeof(T) elements.
  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  friend class Arena;
  void Swap(Buffer& other) noexcept {
    std::swap(arena_, other.arena_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }
  Arena* arena_ = nullptr;
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

// Any thread. Outlives its buffers.
class Arena {
 public:
  // Takes `bytes` from the runtime. kResourceExhausted, with the bytes that were free, when the
  // device (or the host) does not have them. `api` outlives the arena. `name` is for messages.
  static absl::StatusOr<std::unique_ptr<Arena>> Create(CudaApi* api, MemoryKind kind, size_t bytes,
                                                       absl::string_view name);
  virtual ~Arena() = default;

  // `bytes` at a multiple of 256 (of contents unspecified), the first gap that fits: O(pieces).
  // kResourceExhausted with requested and free bytes when there is none.
  virtual absl::StatusOr<Buffer> Allocate(size_t bytes) = 0;
  // For `count` elements; kInvalidArgument when their bytes overflow.
  template <typename T>
  absl::StatusOr<Buffer> AllocateArray(size_t count) {
    if (count > SIZE_MAX / sizeof(T)) {
      return absl::InvalidArgumentError("too many elements for an address space");
    }
    return Allocate(count * sizeof(T));
  }

  virtual CudaApi* api() const = 0;  // whose memory it is
  virtual size_t total_bytes() const = 0;
  virtual size_t free_bytes() const = 0;  // in all gaps together

 protected:
  friend class Buffer;
  Buffer MakeBuffer(void* data, size_t bytes);
  virtual void Free(void* data) = 0;
};

// A piece of memory, in an arena of its own, that nobody has until he takes it. Given back when
// destroyed, by an owner who first waits for the work that uses it. Movable; one thread at a time.
class LateBuffer {
 public:
  LateBuffer() = default;
  // `api` outlives it; `name` is for messages.
  LateBuffer(CudaApi* api, MemoryKind kind, size_t bytes, absl::string_view name)
      : api_(api), kind_(kind), bytes_(bytes), name_(name) {}

  // Unless it is there. Errors as Arena::Create's.
  absl::Status Take();
  bool taken() const { return arena_ != nullptr; }
  size_t taken_bytes() const { return taken() ? ArenaBytes(bytes_) : 0; }
  // Null: it is not taken.
  template <typename T>
  T* as() const {
    return buffer_.as<T>();
  }

 private:
  CudaApi* api_ = nullptr;
  MemoryKind kind_ = MemoryKind::kPinned;
  size_t bytes_ = 0;
  std::string name_;
  std::unique_ptr<Arena> arena_;  // outlives the buffer
  Buffer buffer_;
};

}  // namespace strata::ops::gpu

#endif  // STRATA_OPS_CUDA_API_MEMORY_H_

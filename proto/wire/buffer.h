// Contiguous bytes shared by reference, from a pool that does not give megabyte buffers back to the
// kernel after each message (measured: the biggest single lever on gRPC throughput).
#ifndef STRATA_PROTO_WIRE_BUFFER_H_
#define STRATA_PROTO_WIRE_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"

namespace strata {

struct DeviceValues;

// A reference to bytes that nobody changes any more. Copying shares; any thread.
class Buffer {
 public:
  Buffer() = default;

  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  std::span<const uint8_t> span() const { return {data_, size_}; }

  // A part of this buffer; shares ownership. REQUIRES: offset + size <= this->size().
  Buffer Slice(size_t offset, size_t size) const;

  // The same bytes, and values that lie on a device beside them (device_values.h). Slices have
  // none.
  Buffer With(std::shared_ptr<const DeviceValues> values) const;
  // Null: none.
  const std::shared_ptr<const DeviceValues>& device_values() const { return device_values_; }

  // Copies `bytes` into pooled memory.
  static Buffer CopyOf(std::span<const uint8_t> bytes);

  // Shares bytes that somebody else owns and keeps alive as long as `owner` lives.
  static Buffer Wrap(std::shared_ptr<const void> owner, std::span<const uint8_t> bytes);

 private:
  friend class BufferBuilder;
  std::shared_ptr<const void> owner_;
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
  std::shared_ptr<const DeviceValues> device_values_;
};

// Memory being filled; becomes a Buffer by Finish. One thread at a time. 64-byte aligned.
class BufferBuilder {
 public:
  // Uninitialised memory of exactly `size` bytes, from the process's pool. The pool keeps freed
  // blocks of 4 KiB .. 64 MiB in power-of-two classes, at most kMaxPooledBytes in all, and gives a
  // free one of a request's class or of the class above; requests of at most 2 KiB and of more than
  // 64 MiB go past it. What a block takes up is what was ever used of it (of 2 MiB and more: in
  // whole huge pages).
  // Without memory: std::bad_alloc, which ends the process.
  explicit BufferBuilder(size_t size);
  // The same for sizes that a request asks for. RESOURCE_EXHAUSTED: the system has no memory for
  // it.
  static absl::StatusOr<BufferBuilder> Make(size_t size);
  BufferBuilder(BufferBuilder&&) = default;
  BufferBuilder& operator=(BufferBuilder&&) = default;

  static constexpr size_t kMaxPooledBytes = size_t{1} << 30;

  uint8_t* data() { return data_; }
  size_t size() const { return size_; }
  std::span<uint8_t> span() { return {data_, size_}; }

  // REQUIRES: used <= size(). The builder is empty afterwards.
  Buffer Finish(size_t used);
  Buffer Finish() { return Finish(size_); }

 private:
  std::shared_ptr<void> owner_;
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

// Where the pool's blocks of at least kSourceBytes come from, instead of the system: pinned memory,
// where a device reads and writes messages.
class BlockSource {
 public:
  static constexpr size_t kSourceBytes = size_t{64} << 10;
  virtual ~BlockSource() = default;
  // Null: none is left; the system gives the block then. 64-byte aligned.
  virtual void* Take(size_t bytes) = 0;
  // False: it is none of its blocks.
  virtual bool Give(void* block) = 0;
};
// Once, before the first message; null: the system again, for blocks to come. Lives as long as the
// process's last block: for good.
void SetBlockSource(BlockSource* source);

// What the process's pool holds and has done. Any thread.
struct BufferPoolCounters {
  size_t pooled_bytes = 0;  // free, kept for reuse; <= BufferBuilder::kMaxPooledBytes
  uint64_t reused = 0;      // requests served from the pool
  uint64_t allocated = 0;   // requests of pooled sizes that needed new memory
};
BufferPoolCounters GetBufferPoolCounters();

}  // namespace strata

#endif  // STRATA_PROTO_WIRE_BUFFER_H_

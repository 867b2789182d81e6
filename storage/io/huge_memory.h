// Big blocks of zeroed memory straight from the kernel, on huge pages where it gives them.
// Tested by tests/storage/log/segment_writer_test.cc
#ifndef STRATA_STORAGE_IO_HUGE_MEMORY_H_
#define STRATA_STORAGE_IO_HUGE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"

namespace strata::storage {

enum class PageUse : uint8_t {
  // 2 MiB at a time from the first touch on: for what will be full. A first touch may take
  // milliseconds (in a virtual machine whose host has to find the memory first).
  kHuge,
  // 4 KiB at a time; what is full is named by Collapse, and becomes huge pages behind its owner's
  // back. No touch takes long, and memory never runs ahead of its use.
  kGradual,
};

// Owns one mapping; moves, does not copy. Pages cost memory when they are first touched.
class HugeMemory {
 public:
  static constexpr size_t kHugePage = size_t{2} << 20;

  HugeMemory() = default;
  HugeMemory(HugeMemory&& other) noexcept { *this = std::move(other); }
  HugeMemory& operator=(HugeMemory&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(mapped_, other.mapped_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~HugeMemory();

  // `bytes` > 0 of zeroes, aligned to 4 KiB, blocks of at least 2 MiB to 2 MiB.
  // RESOURCE_EXHAUSTED names these bytes and those that are free. Failpoint: huge_memory.allocate.
  static absl::StatusOr<HugeMemory> Allocate(size_t bytes, PageUse use);

  uint8_t* data() const { return data_; }
  size_t size() const { return size_; }

  // Gives pages back to the kernel; they read as zeroes again. REQUIRES: multiples of 4 KiB within
  // the block.
  void Release(size_t offset, size_t bytes);

  // Asks for the whole huge pages within these bytes, all touched before, to become huge pages: by
  // one background thread of the process, on kernels since 6.1 (MADV_COLLAPSE), else by the
  // kernel's own (khugepaged). It begins once the process has named 384 MiB; what was named before
  // comes first. Only advice. A row that is read while its page is being copied waits, about half
  // a millisecond.
  void Collapse(size_t offset, size_t bytes);

 private:
  void* base_ = nullptr;
  size_t mapped_ = 0;
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace strata::storage

#endif  // STRATA_STORAGE_IO_HUGE_MEMORY_H_

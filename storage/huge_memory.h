// Big blocks of zeroed memory straight from the kernel, on huge pages where it gives them.
#ifndef STRATA_STORAGE_HUGE_MEMORY_H_
#define STRATA_STORAGE_HUGE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"

namespace strata::storage {

// Owns one mapping; moves, does not copy. Pages cost memory when they are first touched.
class HugeMemory {
 public:
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

  // `bytes` > 0 of zeroes, aligned to 4 KiB; blocks of at least 2 MiB are aligned to 2 MiB and
  // asked for on huge pages. RESOURCE_EXHAUSTED names the bytes.
  static absl::StatusOr<HugeMemory> Allocate(size_t bytes);

  uint8_t* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  void* base_ = nullptr;
  size_t mapped_ = 0;
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace strata::storage

#endif  // STRATA_STORAGE_HUGE_MEMORY_H_

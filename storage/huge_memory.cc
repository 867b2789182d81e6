#include "storage/huge_memory.h"

#include <sys/mman.h>

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace strata::storage {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;

}  // namespace

absl::StatusOr<HugeMemory> HugeMemory::Allocate(size_t bytes) {
  const bool huge = bytes >= kHugePage;
  HugeMemory memory;
  memory.size_ = bytes;
  memory.mapped_ = (bytes + kPage - 1) / kPage * kPage + (huge ? kHugePage : 0);
  // MAP_NORESERVE: tables reserve slabs and fill them row by row.
  void* base = mmap(nullptr, memory.mapped_, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the system has no ", memory.mapped_, " bytes of memory left for rows; give the job a ",
        "smaller spec.storage.dramBytesPerServer or the machine more memory"));
  }
  memory.base_ = base;
  uintptr_t start = reinterpret_cast<uintptr_t>(base);
  if (huge) {
    start = (start + kHugePage - 1) / kHugePage * kHugePage;
    // Only advice: without huge pages everything works, slower.
    (void)madvise(reinterpret_cast<void*>(start), bytes, MADV_HUGEPAGE);
  }
  memory.data_ = reinterpret_cast<uint8_t*>(start);
  return memory;
}

HugeMemory::~HugeMemory() {
  if (base_ != nullptr) munmap(base_, mapped_);
}

}  // namespace strata::storage

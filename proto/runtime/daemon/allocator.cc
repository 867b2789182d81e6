#include "proto/runtime/daemon/allocator.h"

#include <malloc.h>

#include <algorithm>
#include <thread>

namespace strata {
namespace {

// Cores that share an arena.
constexpr int kCoresPerArena = 8;

}  // namespace

int MallocArenas() {
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  return std::max(1, (cores + kCoresPerArena - 1) / kCoresPerArena);
}

void TuneAllocator() {
  mallopt(M_ARENA_MAX, MallocArenas());
  // The most that glibc accepts; blocks above are always mapped. gRPC's are its read chunks, 4 MiB.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  // Freed memory at the top of the heap that is kept: a few messages of 64 MiB.
  mallopt(M_TRIM_THRESHOLD, 512 << 20);
}

}  // namespace strata

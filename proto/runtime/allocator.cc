#include "proto/runtime/allocator.h"

#include <malloc.h>

namespace strata {

void TuneAllocator() {
  // The most that glibc accepts; blocks above are always mapped. gRPC's are its read chunks, 4 MiB.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  // Freed memory at the top of the heap that is kept: a few messages of 64 MiB.
  mallopt(M_TRIM_THRESHOLD, 512 << 20);
}

}  // namespace strata

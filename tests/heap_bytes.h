// What the heap has given out: how tests hold memory that is told by formula against what is taken.
#ifndef STRATA_TESTS_HEAP_BYTES_H_
#define STRATA_TESTS_HEAP_BYTES_H_

#include <malloc.h>

#include <cstdint>

namespace strata::testing {

// Bytes of all blocks that are not freed, with malloc's own; blocks in its lists of free ones for a
// thread count, too.
inline uint64_t HeapBytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

}  // namespace strata::testing

#endif  // STRATA_TESTS_HEAP_BYTES_H_

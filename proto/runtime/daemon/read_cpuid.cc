#include "proto/runtime/daemon/read_cpuid.h"

#include <cpuid.h>

namespace strata {

CpuidWords ReadCpuid() {
  CpuidWords words;
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d)) words.leaf1_ecx = c;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) words.leaf7_ebx = b;
  if (__get_cpuid(0x80000001u, &a, &b, &c, &d)) words.leaf80000001_ecx = c;
  if (words.leaf1_ecx >> 27 & 1) {  // OSXSAVE: xgetbv exists
    unsigned low = 0;
    unsigned high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    words.xcr0 = low;
  }
  return words;
}

}  // namespace strata

// Ends a process that was started on a processor without x86-64-v3 with a sentence instead of an
// illegal instruction. Runs before every other constructor of the binary (priority 101 is the first
// that programs may use) and uses no library code, of which the linker might keep a copy that was
// compiled for x86-64-v3.
#include <cpuid.h>
#include <unistd.h>

#include "proto/runtime/cpu_features.h"

namespace strata {
namespace {

void Print(const char* text) {
  unsigned long n = 0;
  while (text[n] != '\0') ++n;
  if (write(STDERR_FILENO, text, n) < 0) return;
}

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

__attribute__((constructor(101))) void CheckCpu() {
  const char* missing = MissingCpuFeature(ReadCpuid());
  if (missing == nullptr) return;
  Print("strata: this processor lacks ");
  Print(missing);
  Print("; the program is built for x86-64-v3 (Intel Haswell, AMD Excavator, or later)\n");
  _exit(kUnsupportedCpuExitCode);
}

}  // namespace
}  // namespace strata

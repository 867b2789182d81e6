// Ends a process that was started on a processor without x86-64-v3 with a sentence instead of an
// illegal instruction. Runs before every other constructor of the binary (priority 101 is the first
// that programs may use) and uses no library code, of which the linker might keep a copy that was
// compiled for x86-64-v3.
#include <unistd.h>

#include "proto/runtime/daemon/cpu_features.h"
#include "proto/runtime/daemon/read_cpuid.h"

namespace strata {
namespace {

void Print(const char* text) {
  unsigned long n = 0;
  while (text[n] != '\0') ++n;
  if (write(STDERR_FILENO, text, n) < 0) return;
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

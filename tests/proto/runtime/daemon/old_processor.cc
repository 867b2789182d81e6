// A program on a processor that has everything but AVX2.
#include <unistd.h>

#include <cstring>

#include "proto/runtime/daemon/read_cpuid.h"

namespace strata {

// The linker takes this one and leaves the library's.
CpuidWords ReadCpuid() {
  CpuidWords words{~0u, ~0u, ~0u, ~0u};
  words.leaf7_ebx &= ~(1u << 5);
  return words;
}

}  // namespace strata

namespace {

void Say(const char* text) {
  if (write(STDOUT_FILENO, text, std::strlen(text)) < 0) _exit(1);
}

// The first that a program may have, behind the check's own.
__attribute__((constructor(102))) void FirstConstructor() { Say("a constructor ran\n"); }

}  // namespace

int main() { Say("main ran\n"); }

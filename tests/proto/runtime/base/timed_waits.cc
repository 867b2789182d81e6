#include "tests/proto/runtime/base/timed_waits.h"

#include <dlfcn.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>

namespace strata::testing {
namespace {

using Syscall = long (*)(long, ...);

std::atomic<int> monotonic{0}, wall{0};
// No static of the function: the lock of one would call it again.
std::atomic<Syscall> of_libc{nullptr};

}  // namespace

TimedWaits TimedWaitsSoFar() { return {monotonic, wall}; }

}  // namespace strata::testing

extern "C" long syscall(long number, ...) noexcept {
  using namespace strata::testing;  // NOLINT: what is above
  va_list list;
  va_start(list, number);
  long a[6];
  for (long& argument : a) argument = va_arg(list, long);
  va_end(list);
  const int operation = static_cast<int>(a[1]);
  if (number == SYS_futex && (operation & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET && a[3] != 0) {
    ++((operation & FUTEX_CLOCK_REALTIME) != 0 ? wall : monotonic);
  }
  Syscall call = of_libc;
  if (call == nullptr) {
    call = reinterpret_cast<Syscall>(dlsym(RTLD_NEXT, "syscall"));
    of_libc = call;
  }
  return call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

// Abseil's timed waits, by the monotonic clock. gRPC's own threads wait with them, and no interface
// of gRPC reaches those waits: the thread that runs its timers (deadlines of calls, pauses before a
// connection is tried again, keepalive) sleeps in absl::CondVar until the next one is due.
//
// Debian's Abseil waits for a time of the wall clock (FUTEX_CLOCK_REALTIME). While that thread
// sleeps for two seconds and the machine's clock is set back by an hour, it sleeps for an hour, and
// so long no call of the process has a deadline and no lost connection comes back. Abseil lets a
// program replace the wait of its semaphores (per_thread_sem.h calls it an extension point): this
// is Abseil's own (per_thread_sem.cc, waiter.cc) but for the clock. A wait that is woken keeps
// Abseil's meaning; its end is counted from what the wall clock shows when it begins.
//
// Our own code waits by proto/runtime/base/timer.h instead, which tests can move.
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <ctime>

#include "absl/base/config.h"
#include "absl/synchronization/internal/create_thread_identity.h"
#include "absl/synchronization/internal/kernel_timeout.h"
#include "absl/synchronization/internal/per_thread_sem.h"
#include "absl/synchronization/internal/waiter.h"
#include "absl/time/time.h"

#if ABSL_LTS_RELEASE_VERSION != 20220623
#error "Written for the Abseil of Debian 12; a newer one may wait by the monotonic clock by itself."
#endif

namespace strata {
namespace {

using absl::base_internal::ThreadIdentity;
using absl::synchronization_internal::KernelTimeout;
using absl::synchronization_internal::Waiter;

// A waiter is one futex: the number of posts that nobody took yet.
using Futex = std::atomic<int32_t>;
static_assert(ABSL_WAITER_MODE == ABSL_WAITER_MODE_FUTEX && sizeof(Waiter) == sizeof(Futex));

// The monotonic time that is as far off as `t` is.
timespec MonotonicTimeOf(KernelTimeout t) {
  // Not absl::Now(), which notices up to two seconds late that the clock was set.
  timespec wall{}, now{};
  clock_gettime(CLOCK_REALTIME, &wall);
  clock_gettime(CLOCK_MONOTONIC, &now);
  const absl::Duration left =
      absl::TimeFromTimespec(t.MakeAbsTimespec()) - absl::TimeFromTimespec(wall);
  const absl::Duration at = absl::DurationFromTimespec(now) + left;
  return absl::ToTimespec(at < absl::ZeroDuration() ? absl::ZeroDuration() : at);
}

// True: took a post. False: the time was over first.
bool WaitUntil(Futex& posts, const timespec& time) {
  while (true) {
    int32_t n = posts.load(std::memory_order_relaxed);
    while (n != 0) {
      if (posts.compare_exchange_weak(n, n - 1, std::memory_order_acquire,
                                      std::memory_order_relaxed)) {
        return true;
      }
    }
    // Without FUTEX_CLOCK_REALTIME: an absolute time of the monotonic clock.
    if (syscall(SYS_futex, &posts, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 0, &time, nullptr,
                FUTEX_BITSET_MATCH_ANY) == 0 ||
        errno == EINTR || errno == EWOULDBLOCK) {
      continue;
    }
    if (errno != ETIMEDOUT) std::abort();
    return false;
  }
}

bool Wait(ThreadIdentity* self, KernelTimeout t) {
  Waiter* const waiter = Waiter::GetWaiter(self);
  if (!t.has_timeout()) return waiter->Wait(t);
  return WaitUntil(*reinterpret_cast<Futex*>(waiter), MonotonicTimeOf(t));
}

}  // namespace
}  // namespace strata

extern "C" bool ABSL_INTERNAL_C_SYMBOL(AbslInternalPerThreadSemWait)(
    absl::synchronization_internal::KernelTimeout t) {
  auto* const self = absl::synchronization_internal::GetOrCreateCurrentThreadIdentity();
  const int ticker = self->ticker.load(std::memory_order_relaxed);
  self->wait_start.store(ticker != 0 ? ticker : 1, std::memory_order_relaxed);
  self->is_idle.store(false, std::memory_order_relaxed);
  if (self->blocked_count_ptr != nullptr) {
    self->blocked_count_ptr->fetch_add(1, std::memory_order_relaxed);
  }
  const bool woken = strata::Wait(self, t);
  if (self->blocked_count_ptr != nullptr) {
    self->blocked_count_ptr->fetch_sub(1, std::memory_order_relaxed);
  }
  self->is_idle.store(false, std::memory_order_relaxed);
  self->wait_start.store(0, std::memory_order_relaxed);
  return woken;
}

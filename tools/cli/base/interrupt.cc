#include "tools/cli/base/interrupt.h"

#include <signal.h>
#include <unistd.h>

namespace strata {
namespace {

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "used by a signal handler");

void OnSignal(int) {
  if (interrupted.exchange(true)) _exit(130);
}

}  // namespace

std::atomic<bool>& CatchInterrupts() {
  struct sigaction action {};
  action.sa_handler = &OnSignal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  return interrupted;
}

}  // namespace strata

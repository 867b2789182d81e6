#include "proto/runtime/base/manual_timer.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace strata {

// At the same time: Advance goes on until it is done.
void ManualTimer::TryAgain(const void* owner, std::function<void()> work) {
  std::this_thread::yield();  // to the thread that it waits for
  alarms_.Add(clock_.Now(), owner, std::move(work));
}

void ManualTimer::AdvanceTo(absl::Time when) {
  while (true) {
    const absl::Time next = std::min(alarms_.next(), when);
    if (next > clock_.Now()) clock_.Advance(next - clock_.Now());
    if (!alarms_.RunFirst(clock_.Now())) {
      if (clock_.Now() >= when) return;
    }
  }
}

}  // namespace strata

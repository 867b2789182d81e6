#include "proto/runtime/base/manual_timer.h"

#include <algorithm>

namespace strata {

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

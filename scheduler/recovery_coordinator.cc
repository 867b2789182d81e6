#include "scheduler/recovery_coordinator.h"

#include <algorithm>

namespace strata::scheduler {

ServerVerdict JudgeServer(const ServerFacts& facts, absl::Duration lease) {
  if (facts.alive) {
    if (!facts.opened || facts.same_process) {
      return facts.opened ? ServerVerdict::kFine : ServerVerdict::kWait;
    }
    return facts.keeps_nothing ? ServerVerdict::kRollBack : ServerVerdict::kWait;
  }
  const bool nothing_to_lose = !facts.opened || facts.keeps_nothing;
  const absl::Duration patience = nothing_to_lose ? lease : lease * (1 + kReturnLeases);
  if (facts.silent > patience && facts.replaceable) return ServerVerdict::kReplace;
  return ServerVerdict::kWait;
}

void RecoveryCoordinator::Begin(uint32_t servers, uint64_t clock) {
  begin_clock_ = max_clock_ = clock;
  servers_.assign(servers, View{clock, false, clock, clock});
}

void RecoveryCoordinator::ProcessChanged(uint32_t server) {
  // Whatever is known now is older than anything that the new process says.
  servers_[server] = View{begin_clock_, false, max_clock_, max_clock_};
}

bool RecoveryCoordinator::Clocks(uint32_t server, uint64_t min_clock, uint64_t max_clock) {
  View& view = servers_[server];
  // A late report of the same process changes nothing: clocks do not go back.
  view.min_clock = std::max(view.min_clock, min_clock);
  view.spoke = true;
  if (view.min_clock + 1 < view.floor) return false;
  max_clock_ = std::max({max_clock_, min_clock, max_clock});
  view.floor = view.next_floor;
  view.next_floor = max_clock_;
  return true;
}

uint64_t RecoveryCoordinator::min_clock() const {
  uint64_t least = max_clock_;
  for (const View& view : servers_) {
    least = std::min(least, view.spoke ? view.min_clock : begin_clock_);
  }
  return least;
}

}  // namespace strata::scheduler

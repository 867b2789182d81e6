#include "worker/client/peer_health.h"

namespace strata {

void PeerHealth::OnCall(uint32_t server, const absl::Status& status, absl::Time now) {
  if (absl::IsCancelled(status)) return;
  MutexLock lock(&mu_);
  if (!absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status)) {
    silent_.erase(server);
    return;
  }
  silent_.try_emplace(server, Silent{server, now, status}).first->second.why = status;
}

void PeerHealth::Forget(uint32_t server) {
  MutexLock lock(&mu_);
  silent_.erase(server);
}

std::vector<PeerHealth::Silent> PeerHealth::silent() const {
  std::vector<Silent> all;
  MutexLock lock(&mu_);
  for (const auto& [server, silent] : silent_) all.push_back(silent);
  return all;
}

}  // namespace strata

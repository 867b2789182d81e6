#include "worker/client/server_links.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/core/mutation.h"

namespace strata {
namespace {

// CANCELLED: it says nothing of whether either of them is there (PeerHealth).
absl::Status Replaced(size_t server, const DataPeer& before, const DataPeer& now) {
  return absl::CancelledError(absl::StrCat("server ", server, " is ", now.name, " at ", now.address,
                                           " now: the call to ", before.name, " at ",
                                           before.address, " is made again there"));
}

}  // namespace

ServerLinks::ServerLinks(DataTransport* transport, uint32_t servers, Caller caller,
                         IdSource* random)
    : transport_(transport),
      servers_(servers),
      caller_(std::move(caller)),
      random_(random),
      peers_(servers),
      channels_(servers),
      known_(servers) {}

// Calls end without the lock: who hears of that may ask for a channel.
void ServerLinks::SetPeers(const std::vector<DataPeer>& peers) {
  std::vector<std::pair<std::shared_ptr<PeerCalls>, absl::Status>> replaced;
  {
    MutexLock lock(&mu_);
    const size_t n = std::min<size_t>(servers_, peers.size());
    for (size_t s = 0; s < n; ++s) {
      if (peers_[s] == peers[s]) continue;
      peers_[s] = peers[s];
      health_->Forget(static_cast<uint32_t>(s));
      channels_[s] = nullptr;
      if (peers[s].address.empty()) continue;
      if (known_[s].calls == nullptr || known_[s].peer != peers[s]) {
        Known before = std::exchange(known_[s], {peers[s], std::make_shared<PeerCalls>()});
        if (before.calls != nullptr) {
          replaced.emplace_back(std::move(before.calls), Replaced(s, before.peer, peers[s]));
        }
      }
      channels_[s] =
          std::make_shared<PeerChannel>(transport_->Connect(peers[s], caller_), known_[s].calls);
    }
  }
  if (STRATA_MUTATION("links.replaced_peer_answers")) return;
  for (const auto& [calls, why] : replaced) calls->Replace(why);
}

std::shared_ptr<DataChannel> ServerLinks::Channel(uint32_t server) const {
  MutexLock lock(&mu_);
  return channels_[server];
}

}  // namespace strata

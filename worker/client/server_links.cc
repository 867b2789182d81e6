#include "worker/client/server_links.h"

#include <algorithm>
#include <utility>

namespace strata {

ServerLinks::ServerLinks(DataTransport* transport, uint32_t servers, Caller caller,
                         IdSource* random)
    : transport_(transport),
      servers_(servers),
      caller_(std::move(caller)),
      random_(random),
      peers_(servers),
      channels_(servers) {}

void ServerLinks::SetPeers(const std::vector<DataPeer>& peers) {
  MutexLock lock(&mu_);
  const size_t n = std::min<size_t>(servers_, peers.size());
  for (size_t s = 0; s < n; ++s) {
    if (peers_[s] == peers[s]) continue;
    peers_[s] = peers[s];
    channels_[s] = peers[s].address.empty() ? nullptr : transport_->Connect(peers[s], caller_);
  }
}

std::shared_ptr<DataChannel> ServerLinks::Channel(uint32_t server) const {
  MutexLock lock(&mu_);
  return channels_[server];
}

}  // namespace strata

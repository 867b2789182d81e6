#include "worker/client/server_links.h"

#include <algorithm>

namespace strata {

ServerLinks::ServerLinks(DataTransport* transport, uint32_t servers, IdSource* random)
    : transport_(transport),
      servers_(servers),
      random_(random),
      addresses_(servers),
      channels_(servers) {}

void ServerLinks::SetAddresses(const std::vector<std::string>& addresses) {
  MutexLock lock(&mu_);
  const size_t n = std::min<size_t>(servers_, addresses.size());
  for (size_t s = 0; s < n; ++s) {
    if (addresses_[s] == addresses[s]) continue;
    addresses_[s] = addresses[s];
    health_->Forget(static_cast<uint32_t>(s));
    channels_[s] = addresses[s].empty() ? nullptr : transport_->Connect(addresses[s]);
  }
}

std::shared_ptr<DataChannel> ServerLinks::Channel(uint32_t server) const {
  MutexLock lock(&mu_);
  return channels_[server];
}

}  // namespace strata

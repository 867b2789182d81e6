#include "proto/runtime/metrics/open_connections.h"

#include <sys/socket.h>

#include "absl/synchronization/mutex.h"

namespace strata {

void OpenConnections::AwaitPlace() {
  MutexLock lock(&mu_);
  const auto room = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return taken_ < most_ || ended_; };
  mu_.Await(absl::Condition(&room));
  ++taken_;
}

void OpenConnections::Leave() {
  MutexLock lock(&mu_);
  --taken_;
}

bool OpenConnections::Add(int socket) {
  MutexLock lock(&mu_);
  if (ended_) return false;
  sockets_.insert(socket);
  return true;
}

void OpenConnections::Remove(int socket) {
  MutexLock lock(&mu_);
  sockets_.erase(socket);
}

void OpenConnections::EndAll() {
  MutexLock lock(&mu_);
  ended_ = true;
  for (const int socket : sockets_) shutdown(socket, SHUT_RDWR);
}

}  // namespace strata

#include "worker/mailbox.h"

#include <utility>

namespace strata {

void Mailbox::Post(std::function<void()> work) {
  absl::MutexLock lock(&mu_);
  waiting_.push_back(std::move(work));
}

void Mailbox::WaitAndRun(absl::Duration timeout) {
  std::vector<std::function<void()>> now;
  {
    absl::MutexLock lock(&mu_);
    const auto some = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return !waiting_.empty(); };
    mu_.AwaitWithTimeout(absl::Condition(&some), timeout);
    now.swap(waiting_);
  }
  for (auto& work : now) work();
}

}  // namespace strata

#include "worker/client/mailbox.h"

#include <utility>

namespace strata {

void Mailbox::Post(std::function<void()> work) {
  absl::MutexLock lock(&mu_);
  waiting_.push_back(std::move(work));
}

void Mailbox::Run() {
  std::vector<std::function<void()>> now;
  {
    absl::MutexLock lock(&mu_);
    now.swap(waiting_);
  }
  for (auto& work : now) work();
}

void Mailbox::WaitAndRun() {
  std::vector<std::function<void()>> now;
  {
    absl::MutexLock lock(&mu_);
    const auto some = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return !waiting_.empty(); };
    mu_.Await(absl::Condition(&some));
    now.swap(waiting_);
  }
  for (auto& work : now) work();
}

}  // namespace strata

#include "worker/client/cancel_flag.h"

#include <utility>

namespace strata {

void CancelFlag::Set() {
  if (set_.exchange(true)) return;  // they know, or will see it before they wait
  MutexLock lock(&mu_);
  for (const auto& weak : mailboxes_) {
    if (const auto mailbox = weak.lock()) mailbox->Post([] {});
  }
}

void CancelFlag::Wakes(std::weak_ptr<Mailbox> mailbox) {
  MutexLock lock(&mu_);
  std::erase_if(mailboxes_, [](const auto& weak) { return weak.expired(); });
  mailboxes_.push_back(std::move(mailbox));
}

}  // namespace strata

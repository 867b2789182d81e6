// What ends calls to servers from another thread.
#ifndef STRATA_WORKER_CLIENT_CANCEL_FLAG_H_
#define STRATA_WORKER_CLIENT_CANCEL_FLAG_H_

#include <atomic>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "proto/core/mutex.h"
#include "worker/client/mailbox.h"

namespace strata {

// A flag that wakes who waits for mail, so that they look at it at once, and not when the next
// answer comes. Thread-safe.
class CancelFlag {
 public:
  void Set();
  // Calls that begin from now on are made.
  void Clear() { set_.store(false); }
  bool set() const { return set_.load(std::memory_order_relaxed); }

  // For those who look now and then by themselves.
  const std::atomic<bool>& value() const { return set_; }
  // From now on Set posts to this mailbox, for as long as somebody else keeps it.
  void Wakes(std::weak_ptr<Mailbox> mailbox);

 private:
  std::atomic<bool> set_{false};
  Mutex mu_;
  // Those that are kept, and such as went since the last Wakes.
  std::vector<std::weak_ptr<Mailbox>> mailboxes_ ABSL_GUARDED_BY(mu_);
};

}  // namespace strata

#endif  // STRATA_WORKER_CLIENT_CANCEL_FLAG_H_

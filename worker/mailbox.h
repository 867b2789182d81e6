// Work for one thread, posted by many.
#ifndef STRATA_WORKER_MAILBOX_H_
#define STRATA_WORKER_MAILBOX_H_

#include <functional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace strata {

// An actor's inbox: closures run on the owner's thread, in the order they came. Thread-safe.
// Bounded by what posts to it: at most the calls in flight and one control message each.
class Mailbox {
 public:
  void Post(std::function<void()> work);

  // Owner only: waits until something was posted or `timeout` has passed, then runs all there is.
  void WaitAndRun(absl::Duration timeout);

 private:
  absl::Mutex mu_;
  std::vector<std::function<void()>> waiting_ ABSL_GUARDED_BY(mu_);
};

}  // namespace strata

#endif  // STRATA_WORKER_MAILBOX_H_

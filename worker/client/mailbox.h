// Work for one thread, posted by many.
// Tested by tests/worker/client/server_session_test.cc
#ifndef STRATA_WORKER_CLIENT_MAILBOX_H_
#define STRATA_WORKER_CLIENT_MAILBOX_H_

#include <functional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace strata {

// An actor's inbox: closures run on the owner's thread, in the order they came. Thread-safe.
// Bounded by what posts to it: at most the calls in flight, one alarm for each server, and one
// control message each. What comes when the owner has left is never run.
class Mailbox {
 public:
  void Post(std::function<void()> work);

  // Owner only: runs all there is.
  void Run();
  // Owner only: the same, after something was posted. A wait for a time is a Timer that posts.
  void WaitAndRun();

 private:
  absl::Mutex mu_;
  std::vector<std::function<void()>> waiting_ ABSL_GUARDED_BY(mu_);
};

}  // namespace strata

#endif  // STRATA_WORKER_CLIENT_MAILBOX_H_

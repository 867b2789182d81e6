// Work for one thread, posted by many.
#ifndef STRATA_WORKER_CLIENT_MAILBOX_H_
#define STRATA_WORKER_CLIENT_MAILBOX_H_

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "proto/core/mutex.h"

namespace strata {

// An actor's inbox: closures run on the owner's thread, in the order they came. Thread-safe.
//
// Mail may be of a round, that is, of use only until the owner ends that round: what of it has come
// is dropped then, what comes later at once, with all that it holds.
//
// Bound: at most the calls of the round that are in flight, and of what is of no round an opening
// and an alarm for each server, and the control messages since the owner last looked. What comes
// when the owner has left is never run.
class Mailbox {
 public:
  using Round = uint64_t;
  static constexpr Round kNoRound = 0;

  void Post(std::function<void()> work) { PostIn(kNoRound, std::move(work)); }
  // Nothing, where the round is over.
  void PostIn(Round round, std::function<void()> work);

  // Owner only: the round that goes on.
  Round round() const;
  // Owner only: it is over, and the next one begins.
  void EndRound();

  // Owner only: runs all there is.
  void Run();
  // Owner only: the same, after something was posted. A wait for a time is a Timer that posts.
  void WaitAndRun();

 private:
  struct Mail {
    Round round;
    std::function<void()> work;
  };

  mutable Mutex mu_;
  Round round_ ABSL_GUARDED_BY(mu_) = 1;
  std::vector<Mail> waiting_ ABSL_GUARDED_BY(mu_);
};

}  // namespace strata

#endif  // STRATA_WORKER_CLIENT_MAILBOX_H_

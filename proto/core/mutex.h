// The lock of code that runs under ThreadSanitizer: absl::Mutex, or, in a build for TSan, a lock
// that TSan sees. Debian's Abseil is not instrumented, so TSan takes what absl::Mutex guards for
// races.
#ifndef STRATA_PROTO_CORE_MUTEX_H_
#define STRATA_PROTO_CORE_MUTEX_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

#ifdef __SANITIZE_THREAD__
#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#endif

namespace strata {

#ifndef __SANITIZE_THREAD__

using Mutex = absl::Mutex;
using MutexLock = absl::MutexLock;
using ReaderMutexLock = absl::ReaderMutexLock;

#else

// The part of absl::Mutex that we use, on pthread's lock. Wakes every waiter at each Unlock: slow,
// and right. As with absl::Mutex, who takes the lock and finds that nobody needs it any more may
// destroy it, though the thread that had it before has not returned from Unlock yet: giving
// pthread's lock back is the last thing that Unlock does to the object.
class ABSL_LOCKABLE Mutex {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mu_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() {
    changed_.notify_all();
    mu_.unlock();
  }
  bool TryLock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) { return mu_.try_lock(); }
  void ReaderLock() ABSL_SHARED_LOCK_FUNCTION() { mu_.lock_shared(); }
  void ReaderUnlock() ABSL_UNLOCK_FUNCTION() { mu_.unlock_shared(); }
  // REQUIRES: not held for reading.
  void Await(const absl::Condition& condition) ABSL_EXCLUSIVE_LOCKS_REQUIRED(this) {
    std::unique_lock<std::shared_mutex> lock(mu_, std::adopt_lock);
    changed_.notify_all();  // the wait lets others in: what this thread changed may be awaited
    changed_.wait(lock, [&] { return condition.Eval(); });
    lock.release();
  }
  bool AwaitWithTimeout(const absl::Condition& condition, absl::Duration timeout)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(this) {
    std::unique_lock<std::shared_mutex> lock(mu_, std::adopt_lock);
    changed_.notify_all();
    const bool met = changed_.wait_for(lock, absl::ToChronoNanoseconds(timeout),
                                       [&] { return condition.Eval(); });
    lock.release();
    return met;
  }
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK() {}
  void AssertReaderHeld() const ABSL_ASSERT_SHARED_LOCK() {}

 private:
  std::shared_mutex mu_;
  std::condition_variable_any changed_;
};

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mu) ABSL_EXCLUSIVE_LOCK_FUNCTION(mu) : mu_(mu) { mu_->Lock(); }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mu_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* const mu_;
};

class ABSL_SCOPED_LOCKABLE ReaderMutexLock {
 public:
  explicit ReaderMutexLock(Mutex* mu) ABSL_SHARED_LOCK_FUNCTION(mu) : mu_(mu) { mu_->ReaderLock(); }
  ~ReaderMutexLock() ABSL_UNLOCK_FUNCTION() { mu_->ReaderUnlock(); }
  ReaderMutexLock(const ReaderMutexLock&) = delete;
  ReaderMutexLock& operator=(const ReaderMutexLock&) = delete;

 private:
  Mutex* const mu_;
};

#endif

}  // namespace strata

#endif  // STRATA_PROTO_CORE_MUTEX_H_

// A lock that Clang's thread-safety analysis and ThreadSanitizer both see. (ops uses nothing of
// proto, where the like of it for the rest of Strata is.)
// Tested by tests/ops/cuda/api/memory_test.cc
#ifndef STRATA_OPS_CUDA_API_MUTEX_H_
#define STRATA_OPS_CUDA_API_MUTEX_H_

#include <mutex>

#include "absl/base/thread_annotations.h"

namespace strata::ops::gpu {

class ABSL_LOCKABLE Mutex {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mu_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mu_.unlock(); }

 private:
  std::mutex mu_;
};

// Holds the lock while it lives.
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mu) ABSL_EXCLUSIVE_LOCK_FUNCTION(mu) : mu_(mu) { mu_->Lock(); }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mu_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* const mu_;
};

}  // namespace strata::ops::gpu

#endif  // STRATA_OPS_CUDA_API_MUTEX_H_

// Which pinned memory a process holds, and how much it may (CudaApi::LimitPinned).
// Tested by tests/ops/cuda/fault_test.cc
// Tested by tests/worker/device/row_memory_test.cc
#ifndef STRATA_OPS_CUDA_API_PINNED_LEDGER_H_
#define STRATA_OPS_CUDA_API_PINNED_LEDGER_H_

#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "ops/cuda/api/mutex.h"

namespace strata::ops::gpu {

// Any thread.
class PinnedLedger {
 public:
  void Limit(uint64_t bytes);

  // Counts `bytes`: kResourceExhausted with requested and free ones beyond the limit. Then either
  // the piece that they became, or GiveBack.
  absl::Status Take(size_t bytes);
  void Add(const void* piece, size_t bytes);
  void GiveBack(size_t bytes);
  // A piece, which is no longer counted; others are none of ours.
  void Remove(const void* piece);

  uint64_t bytes() const;
  // Whether all of it lies in one piece.
  bool Has(const void* p, size_t bytes) const;

 private:
  mutable Mutex mu_;
  uint64_t limit_ ABSL_GUARDED_BY(mu_) = UINT64_MAX;
  uint64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<uintptr_t, size_t> pieces_ ABSL_GUARDED_BY(mu_);  // bytes, by address
};

}  // namespace strata::ops::gpu

#endif  // STRATA_OPS_CUDA_API_PINNED_LEDGER_H_

#include "ops/cuda/api/pinned_ledger.h"

#include "absl/strings/str_cat.h"

namespace strata::ops::gpu {

void PinnedLedger::Limit(uint64_t bytes) {
  MutexLock lock(&mu_);
  limit_ = bytes;
}

absl::Status PinnedLedger::Take(size_t bytes) {
  MutexLock lock(&mu_);
  const uint64_t left = bytes_ < limit_ ? limit_ - bytes_ : 0;
  if (bytes > left) {
    return absl::ResourceExhaustedError(absl::StrCat(bytes, " bytes of pinned memory wanted, ",
                                                     left, " of this process's ", limit_,
                                                     " are free (--pinned-bytes)"));
  }
  bytes_ += bytes;
  return absl::OkStatus();
}

void PinnedLedger::Add(const void* piece, size_t bytes) {
  MutexLock lock(&mu_);
  pieces_[reinterpret_cast<uintptr_t>(piece)] = bytes;
}

void PinnedLedger::GiveBack(size_t bytes) {
  MutexLock lock(&mu_);
  bytes_ -= bytes;
}

void PinnedLedger::Remove(const void* piece) {
  MutexLock lock(&mu_);
  const auto found = pieces_.find(reinterpret_cast<uintptr_t>(piece));
  if (found == pieces_.end()) return;
  bytes_ -= found->second;
  pieces_.erase(found);
}

uint64_t PinnedLedger::bytes() const {
  MutexLock lock(&mu_);
  return bytes_;
}

bool PinnedLedger::Has(const void* p, size_t bytes) const {
  const auto at = reinterpret_cast<uintptr_t>(p);
  MutexLock lock(&mu_);
  auto piece = pieces_.upper_bound(at);
  if (piece == pieces_.begin()) return false;
  --piece;
  const size_t offset = at - piece->first;
  return offset <= piece->second && bytes <= piece->second - offset;
}

}  // namespace strata::ops::gpu

#include "server/pinned_messages.h"

#include <atomic>
#include <cstddef>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace strata::server {
namespace {

class PinnedMessages : public BlockSource {
 public:
  PinnedMessages(ops::gpu::CudaApi* api, size_t most_bytes) : api_(api), most_(most_bytes) {}

  void* Take(size_t bytes) override {
    {
      absl::MutexLock lock(&mu_);
      if (bytes > most_ - used_) return nullptr;
      used_ += bytes;
    }
    void* block = nullptr;
    const bool taken = api_->MallocHost(bytes, &block).ok();
    absl::MutexLock lock(&mu_);
    if (taken) {
      blocks_[block] = bytes;
    } else {
      used_ -= bytes;
    }
    return block;
  }

  bool Give(void* block) override {
    {
      absl::MutexLock lock(&mu_);
      const auto found = blocks_.find(block);
      if (found == blocks_.end()) return false;
      used_ -= found->second;
      blocks_.erase(found);
    }
    // An error is of a lost device, which ends the process.
    (void)api_->FreeHost(block);
    return true;
  }

 private:
  ops::gpu::CudaApi* const api_;
  const size_t most_;
  absl::Mutex mu_;
  size_t used_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<void*, size_t> blocks_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

std::unique_ptr<BlockSource> MakePinnedMessages(ops::gpu::CudaApi* api, size_t most_bytes) {
  return std::make_unique<PinnedMessages>(api, most_bytes);
}

}  // namespace strata::server

// Pieces of one arena that are taken together, so that the arena can be made as large as they are.
// Tested by tests/worker/device/dense_step_test.cc
#ifndef STRATA_WORKER_DEVICE_LAYERS_BUFFER_LIST_H_
#define STRATA_WORKER_DEVICE_LAYERS_BUFFER_LIST_H_

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "ops/cuda/api/memory.h"

namespace strata::device {

// One thread at a time.
class BufferList {
 public:
  // `out` outlives Take.
  void Want(ops::gpu::Buffer* out, size_t bytes) {
    wanted_.emplace_back(out, bytes);
    bytes_ += ops::gpu::ArenaBytes(bytes);
  }
  template <typename T>
  void WantArray(ops::gpu::Buffer* out, size_t count) {
    Want(out, count * sizeof(T));
  }

  // Of an arena that has room for them all.
  size_t bytes() const { return bytes_; }

  absl::Status Take(ops::gpu::Arena* arena) const {
    for (const auto& [out, bytes] : wanted_) {
      auto taken = arena->Allocate(bytes);
      if (!taken.ok()) return taken.status();
      *out = *std::move(taken);
    }
    return absl::OkStatus();
  }

 private:
  std::vector<std::pair<ops::gpu::Buffer*, size_t>> wanted_;
  size_t bytes_ = 0;
};

}  // namespace strata::device

#endif  // STRATA_WORKER_DEVICE_LAYERS_BUFFER_LIST_H_

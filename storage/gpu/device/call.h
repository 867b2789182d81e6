// What the calls of a GPU table on a device share: their bound, arrays on both sides and the copies
// between them, the one wait, and the error that ends it all.
// Tested by tests/storage/gpu/device/backend_test.cc
#ifndef STRATA_STORAGE_GPU_DEVICE_CALL_H_
#define STRATA_STORAGE_GPU_DEVICE_CALL_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ops/cuda/api/api.h"
#include "storage/gpu/device/memory.h"

namespace strata::storage::gpu {

// An argument or an answer: (n) in pinned memory and in the device's.
template <typename T>
struct GpuCallArray {
  T* host;
  T* device;
  size_t at;  // where it begins, in bytes; the same on both sides
};

// One call at a time, from Begin to End: arguments are taken, filled and copied in; kernels run;
// answers, taken later, are copied out, and are there after End. Allocates nothing. Not
// thread-safe; memory outlives it.
class GpuDeviceCall {
 public:
  GpuDeviceCall(ops::gpu::CudaApi* api, ops::gpu::StreamHandle stream,
                const GpuDeviceMemory& memory, uint32_t most)
      : api_(api), stream_(stream), memory_(memory), most_(most) {}

  // A call that names n of anything. The first error of all calls, if there was one.
  absl::Status Begin(size_t n) {
    arrays_ = {};
    scratch_ = {};
    if (broken_.ok() && n > most_) {
      broken_ = absl::InternalError(
          absl::StrCat("a call of a GPU table names ", n, "; it takes at most ", most_));
    }
    return broken_;
  }
  // s: of what the stream was given. Waits for it.
  absl::Status End(absl::Status s) {
    if (s.ok()) s = api_->Synchronize(stream_);
    if (!s.ok()) broken_ = s;
    return s;
  }

  template <typename T>
  GpuCallArray<T> Take(size_t n) {
    const size_t at = arrays_.Take<T>(n);
    return {reinterpret_cast<T*>(memory_.host_words + at),
            reinterpret_cast<T*>(memory_.device_words + at), at};
  }
  // On the device alone.
  template <typename T>
  T* Scratch(size_t n) {
    return reinterpret_cast<T*>(memory_.lists + scratch_.Take<T>(n));
  }

  // To the device: all that was taken so far. Asynchronous.
  absl::Status CopyIn() {
    return api_->CopyAsync(memory_.device_words, memory_.host_words, arrays_.bytes(), stream_);
  }
  // From the device: all that was taken from offset `begin` on. Asynchronous.
  absl::Status CopyOut(size_t begin) {
    return api_->CopyAsync(memory_.host_words + begin, memory_.device_words + begin,
                           arrays_.bytes() - begin, stream_);
  }

  // The call's one argument: takes, fills and copies it.
  absl::Status SlotsIn(std::span<const uint32_t> slots, const uint32_t** device) {
    const auto array = Take<uint32_t>(slots.size());
    std::copy(slots.begin(), slots.end(), array.host);
    *device = array.device;
    return CopyIn();
  }

 private:
  ops::gpu::CudaApi* const api_;
  const ops::gpu::StreamHandle stream_;
  const GpuDeviceMemory& memory_;
  const uint32_t most_;
  absl::Status broken_;
  // Of the call at hand.
  GpuPieceCutter arrays_, scratch_;
};

}  // namespace strata::storage::gpu

#endif  // STRATA_STORAGE_GPU_DEVICE_CALL_H_

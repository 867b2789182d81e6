// Owners of the runtime's streams, events and graphs (api.h). Movable; destroyed with their owner,
// who makes sure that the work they were given is done.
// Tested by tests/ops/cuda/fault_test.cc
#ifndef STRATA_OPS_CUDA_API_STREAM_H_
#define STRATA_OPS_CUDA_API_STREAM_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ops/cuda/api/api.h"

namespace strata::ops::gpu {

// A handle that is destroyed once, by the member function `kDestroy` of its api. What destroying
// answers is dropped: a lost device has said so to the calls before.
template <typename Handle, absl::Status (CudaApi::*kDestroy)(Handle)>
class Owned {
 public:
  Owned() = default;
  Owned(CudaApi* api, Handle handle) : api_(api), handle_(handle) {}
  Owned(Owned&& other) noexcept { Swap(other); }
  Owned& operator=(Owned&& other) noexcept {
    Owned taken(std::move(other));
    Swap(taken);
    return *this;
  }
  ~Owned() {
    if (handle_ != nullptr) (void)(api_->*kDestroy)(handle_);
  }
  Handle get() const { return handle_; }
  explicit operator bool() const { return handle_ != nullptr; }

 private:
  void Swap(Owned& other) noexcept {
    std::swap(api_, other.api_);
    std::swap(handle_, other.handle_);
  }
  CudaApi* api_ = nullptr;
  Handle handle_ = nullptr;
};

using Stream = Owned<StreamHandle, &CudaApi::DestroyStream>;
using Event = Owned<EventHandle, &CudaApi::DestroyEvent>;
using Graph = Owned<GraphHandle, &CudaApi::DestroyGraph>;

absl::StatusOr<Stream> MakeStream(CudaApi* api);
absl::StatusOr<Event> MakeEvent(CudaApi* api, EventUse use);

// The graph of what `record` gives the stream; nothing of it is run yet. `record` may launch, copy,
// fill, record events and let streams wait, and nothing else. When it fails, so does this, and the
// stream is as before.
template <typename Record>
absl::StatusOr<Graph> CaptureGraph(CudaApi* api, const Stream& stream, const Record& record) {
  absl::Status status = api->BeginCapture(stream.get());
  if (!status.ok()) return status;
  const absl::Status recorded = record();
  GraphHandle handle = nullptr;
  status = api->EndCapture(stream.get(), &handle);
  if (!status.ok()) return recorded.ok() ? status : recorded;
  Graph graph(api, handle);
  if (!recorded.ok()) return recorded;
  return graph;
}

}  // namespace strata::ops::gpu

#endif  // STRATA_OPS_CUDA_API_STREAM_H_

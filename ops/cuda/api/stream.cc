#include "ops/cuda/api/stream.h"

namespace strata::ops::gpu {

absl::StatusOr<Stream> MakeStream(CudaApi* api) {
  StreamHandle handle = nullptr;
  absl::Status status = api->CreateStream(&handle);
  if (!status.ok()) return status;
  return Stream(api, handle);
}

absl::StatusOr<Event> MakeEvent(CudaApi* api, EventUse use) {
  EventHandle handle = nullptr;
  absl::Status status = api->CreateEvent(use, &handle);
  if (!status.ok()) return status;
  return Event(api, handle);
}

}  // namespace strata::ops::gpu

// Messages of a process with a device in pinned memory, so that the device writes pulled rows
// straight into the replies (storage/gpu/device/updates.h).
// Tested by tests/faults/device_lost_test.cc
#ifndef STRATA_SERVER_PINNED_MESSAGES_H_
#define STRATA_SERVER_PINNED_MESSAGES_H_

#include <memory>

#include "ops/cuda/api/api.h"
#include "proto/wire/buffer.h"

namespace strata::server {

// At most `most_bytes` of blocks at a time, of the process's pinned memory (CudaApi::LimitPinned);
// it gives none beyond. `api` outlives it. Thread-safe.
std::unique_ptr<BlockSource> MakePinnedMessages(ops::gpu::CudaApi* api, size_t most_bytes);

}  // namespace strata::server

#endif  // STRATA_SERVER_PINNED_MESSAGES_H_

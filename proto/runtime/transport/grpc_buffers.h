// Our buffers as gRPC's and back, and the paths of the data plane's methods.
// Tested by tests/proto/runtime/transport/grpc_transport_test.cc
#ifndef STRATA_PROTO_RUNTIME_TRANSPORT_GRPC_BUFFERS_H_
#define STRATA_PROTO_RUNTIME_TRANSPORT_GRPC_BUFFERS_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "proto/runtime/base/failpoints.h"
#include "proto/runtime/transport/transport.h"
#include "proto/wire/buffer.h"

namespace strata::grpc_internal {

// By DataMethod.
inline constexpr const char* kMethodPaths[kDataMethods] = {
    "/strata.DataPlane/OpenSession", "/strata.DataPlane/Pull",     "/strata.DataPlane/Push",
    "/strata.DataPlane/Mark",        "/strata.DataPlane/Prefetch", "/strata.DataPlane/Forward",
};

// Trailing metadata of a CANCELLED that a handler gave. A closing gRPC server gives CANCELLED of
// its own to calls that no handler has seen yet; without the mark it means UNAVAILABLE.
inline constexpr const char* kHandlerMark = "strata-handler";

// Shares the bytes; values on a device stay behind.
inline grpc::Slice ToSlice(const Buffer& buffer) {
  if (buffer.size() == 0) return grpc::Slice();
  auto* const bytes = const_cast<uint8_t*>(buffer.data());  // gRPC only reads them
  auto owner = std::make_unique<Buffer>(buffer.With(nullptr));
  return grpc::Slice(
      bytes, buffer.size(), [](void* user) { delete static_cast<Buffer*>(user); }, owner.release());
}
inline grpc::ByteBuffer ToByteBuffer(std::span<const Buffer> pieces) {
  std::vector<grpc::Slice> slices;
  slices.reserve(pieces.size());
  for (const Buffer& piece : pieces) slices.push_back(ToSlice(piece));
  if (slices.empty()) slices.emplace_back();
  return grpc::ByteBuffer(slices.data(), slices.size());
}
inline grpc::ByteBuffer ToByteBuffer(const Buffer& buffer) { return ToByteBuffer({&buffer, 1}); }

// Copies, because what arrives lies in pieces at any alignment, each of which would keep a whole
// read chunk alive. RESOURCE_EXHAUSTED: there is no memory for the copy (failpoint grpc.memory).
inline absl::StatusOr<Buffer> FromByteBuffer(const grpc::ByteBuffer& bytes) {
  if (!bytes.Valid()) return Buffer();
  std::vector<grpc::Slice> slices;
  const grpc::Status status = bytes.Dump(&slices);
  if (!status.ok())
    return absl::InvalidArgumentError("message cannot be read: " + status.error_message());
  if (absl::Status s = Failpoint("grpc.memory"); !s.ok()) return s;
  absl::StatusOr<BufferBuilder> builder = BufferBuilder::Make(bytes.Length());
  if (!builder.ok()) return builder.status();
  size_t at = 0;
  for (const grpc::Slice& s : slices) {
    if (s.size() != 0) std::memcpy(builder->data() + at, s.begin(), s.size());
    at += s.size();
  }
  return builder->Finish();
}

}  // namespace strata::grpc_internal

#endif  // STRATA_PROTO_RUNTIME_TRANSPORT_GRPC_BUFFERS_H_

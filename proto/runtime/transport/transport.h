// How data-plane messages travel between a worker and a server: gRPC between processes, or straight
// calls inside one. Messages are opaque bytes here (message_codec.h reads and writes them). Values
// on a device (Buffer::device_values) travel inside a process alone, both ways.
// Tested by tests/proto/runtime/transport/inproc_transport_test.cc
// Tested by tests/proto/runtime/transport/grpc_transport_test.cc
#ifndef STRATA_PROTO_RUNTIME_TRANSPORT_TRANSPORT_H_
#define STRATA_PROTO_RUNTIME_TRANSPORT_TRANSPORT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/runtime/credentials/caller.h"
#include "proto/runtime/credentials/rpc_policy.h"
#include "proto/wire/buffer.h"
#include "proto/wire/message_limits.h"  // kMaxMessageBytes, the limit of every transport

namespace strata {

// The data plane's methods (proto/strata/data.proto, service DataPlane).
enum class DataMethod : uint8_t {
  kOpenSession = 0,
  kPull = 1,
  kPush = 2,
  kMark = 3,
  kPrefetch = 4,
  kForward = 5
};
inline constexpr int kDataMethods = 6;

// What rpc_policy.h says of it.
constexpr Rpc RpcOf(DataMethod method) { return static_cast<Rpc>(method); }
static_assert(RpcOf(DataMethod::kOpenSession) == Rpc::kOpenSession);
static_assert(RpcOf(DataMethod::kPull) == Rpc::kPull);
static_assert(RpcOf(DataMethod::kPush) == Rpc::kPush);
static_assert(RpcOf(DataMethod::kMark) == Rpc::kMark);
static_assert(RpcOf(DataMethod::kPrefetch) == Rpc::kPrefetch);

using DataReply = std::function<void(absl::StatusOr<Buffer>)>;

// A server's side. Handle may be called from many threads at once; it must call `reply` exactly
// once, from any thread, then or later. `request` may be kept as long as wanted; `caller`, who has
// proven that he is that, lives until Handle returns. What he may do the handler decides
// (proto/runtime/credentials/rpc_policy.h).
class DataHandler {
 public:
  virtual ~DataHandler() = default;
  virtual void Handle(const Caller& caller, DataMethod method, Buffer request, DataReply reply) = 0;
};

// A worker's side: a connection to one server. Thread-safe.
class DataChannel {
 public:
  virtual ~DataChannel() = default;
  // Sends `request`; calls `done` exactly once, from a thread of the transport (or before
  // returning), with the reply or: UNAVAILABLE (not connected or broken: retry the same bytes),
  // DEADLINE_EXCEEDED after `timeout`, RESOURCE_EXHAUSTED (over kMaxMessageBytes), INVALID_ARGUMENT
  // (values on a device, which this channel does not carry: nothing was sent), or whatever status
  // the handler gave. `done` must not block.
  virtual void Call(DataMethod method, Buffer request, absl::Duration timeout, DataReply done) = 0;

  // The same with a request whose bytes are those of the pieces, in order: a transport that can
  // sends them from where they lie, others (this) put them together first.
  virtual void CallInPieces(DataMethod method, std::vector<Buffer> request, absl::Duration timeout,
                            DataReply done);

  // Call and wait.
  absl::StatusOr<Buffer> CallAndWait(DataMethod method, Buffer request, absl::Duration timeout);
};

// Something that accepts calls at an address until destroyed; the destructor answers calls in
// flight with UNAVAILABLE, and returns when no handler call runs. A reply that comes later goes
// nowhere. Not to be destroyed from inside a handler call.
class DataListener {
 public:
  virtual ~DataListener() = default;
  // The address to give to Connect, with the real port where 0 was asked for.
  virtual std::string address() const = 0;
};

// Where a server listens, and as who: one that has another name in its certificate is not called.
struct DataPeer {
  std::string address;
  // Not empty where certificates are asked for; elsewhere nobody looks.
  std::string name;

  friend bool operator==(const DataPeer&, const DataPeer&) = default;
};

// Thread-safe. May be destroyed before its listeners and channels, which go on.
class DataTransport {
 public:
  virtual ~DataTransport() = default;
  // `handler` must outlive the listener. Errors: ALREADY_EXISTS (address taken), INVALID_ARGUMENT.
  virtual absl::StatusOr<std::unique_ptr<DataListener>> Listen(const std::string& address,
                                                               DataHandler* handler) = 0;
  // Does not wait for the connection; calls fail with UNAVAILABLE until there is one. Calls are
  // `caller`'s: a transport that asks for certificates proves name and role by its own one, and
  // sends what `caller.jobs` has at each call.
  virtual std::shared_ptr<DataChannel> Connect(const DataPeer& peer, const Caller& caller) = 0;
};

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_TRANSPORT_TRANSPORT_H_

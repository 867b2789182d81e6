#include "proto/runtime/transport/grpc_transport.h"

#include <atomic>
#include <string>
#include <utility>

#include "proto/runtime/transport/grpc_channel.h"
#include "proto/runtime/transport/grpc_listener.h"

namespace strata {
namespace {

class GrpcTransport : public DataTransport {
 public:
  explicit GrpcTransport(GrpcTransportOptions options) : options_(std::move(options)) {
    for (size_t i = 0; i < options_.client_threads; ++i) {
      queues_.push_back(grpc_internal::MakeClientQueue());
    }
  }

  absl::StatusOr<std::unique_ptr<DataListener>> Listen(const std::string& address,
                                                       DataHandler* handler) override {
    return grpc_internal::StartListener(options_, address, handler);
  }

  std::shared_ptr<DataChannel> Connect(const DataPeer& peer, const Caller& caller) override {
    const size_t next = channels_.fetch_add(1, std::memory_order_relaxed);
    return grpc_internal::MakeChannel(
        queues_[next % queues_.size()], peer, caller,
        {.lease = options_.lease == nullptr ? KnownLease::kDefault : options_.lease->get(),
         .tls = options_.tls});
  }

 private:
  const GrpcTransportOptions options_;
  std::vector<std::shared_ptr<grpc_internal::ClientQueue>> queues_;
  std::atomic<size_t> channels_{0};
};

}  // namespace

std::unique_ptr<DataTransport> MakeGrpcTransport(GrpcTransportOptions options) {
  return std::make_unique<GrpcTransport>(std::move(options));
}

}  // namespace strata

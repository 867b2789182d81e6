// gRPC's health protocol (proto/strata/health.proto) behind the admission of all calls: gRPC's own
// service asks nobody who he is.
// Tested by tests/server/rpc_walk_test.cc
#ifndef STRATA_PROTO_RUNTIME_TRANSPORT_HEALTH_SERVICE_H_
#define STRATA_PROTO_RUNTIME_TRANSPORT_HEALTH_SERVICE_H_

#include <memory>

#include "proto/runtime/transport/process_tls.h"

namespace grpc {
class Service;
}  // namespace grpc

namespace strata {

// Thread-safe. Outlives the server that it is registered with.
class HealthService {
 public:
  // Null: nobody is asked.
  static std::unique_ptr<HealthService> Make(std::shared_ptr<ProcessTls> tls);
  virtual ~HealthService() = default;

  // What a server is built with.
  virtual grpc::Service* service() = 0;
  // From now on the answer is NOT_SERVING; who watches is told, and his call ends.
  virtual void Close() = 0;
};

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_TRANSPORT_HEALTH_SERVICE_H_

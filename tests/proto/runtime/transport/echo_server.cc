// A process that the gRPC transport's test starts and kills: prints its address, answers Pull with
// the request, and holds Push for ever after printing "holding".
#include <unistd.h>

#include <cstdio>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "proto/runtime/transport/grpc_transport.h"
#include "proto/runtime/transport/transport.h"

namespace strata {
namespace {

struct Handler : public DataHandler {
  void Handle(const Caller&, DataMethod method, Buffer request, DataReply reply) override {
    if (method != DataMethod::kPush) return reply(std::move(request));
    absl::MutexLock lock(&mu);
    held.push_back(std::move(reply));
    std::puts("holding");
    std::fflush(stdout);
  }
  absl::Mutex mu;
  std::vector<DataReply> held;
};

int Main() {
  alarm(60);  // in case the test dies first
  Handler handler;
  const auto transport = MakeGrpcTransport();
  const auto listener = transport->Listen("127.0.0.1:0", &handler);
  if (!listener.ok()) return 1;
  std::printf("%s\n", (*listener)->address().c_str());
  std::fflush(stdout);
  for (;;) pause();
}

}  // namespace
}  // namespace strata

int main() { return strata::Main(); }

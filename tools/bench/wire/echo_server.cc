#include "tools/bench/wire/echo_server.h"

#include <csignal>
#include <cstdio>
#include <utility>

#include "proto/runtime/transport/grpc_transport.h"
#include "proto/runtime/transport/transport.h"
#include "proto/wire/buffer.h"

namespace strata::bench {
namespace {

class Echo : public DataHandler {
 public:
  explicit Echo(size_t bytes) {
    BufferBuilder builder(bytes);
    for (uint8_t& b : builder.span()) b = 7;
    reply_ = builder.Finish();
  }
  void Handle(const Caller&, DataMethod, Buffer, DataReply reply) override { reply(reply_); }

 private:
  Buffer reply_;
};

}  // namespace

int RunEchoServer(const std::string& address_file, size_t reply_bytes) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  Echo echo(reply_bytes);
  auto transport = MakeGrpcTransport({});
  auto listener = transport->Listen("127.0.0.1:0", &echo);
  if (!listener.ok()) return 1;
  const std::string next = address_file + ".next";
  std::FILE* file = std::fopen(next.c_str(), "w");
  if (file == nullptr) return 1;
  std::fprintf(file, "%s\n", (*listener)->address().c_str());
  std::fclose(file);
  if (std::rename(next.c_str(), address_file.c_str()) != 0) return 1;
  int number = 0;
  sigwait(&signals, &number);
  return 0;
}

}  // namespace strata::bench

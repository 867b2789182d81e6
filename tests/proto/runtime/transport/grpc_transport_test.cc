#include "proto/runtime/transport/grpc_transport.h"

#include <arpa/inet.h>
#include <google/protobuf/descriptor.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/channel_arguments.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "proto/runtime/base/failpoints.h"
#include "proto/runtime/transport/grpc_server.h"
#include "proto/runtime/transport/grpc_status.h"
#include "proto/strata/control.grpc.pb.h"
#include "proto/strata/data.pb.h"
#include "proto/wire/device_values.h"
#include "proto/wire/message_codec.h"
#include "tests/proto/runtime/transport/transport_conformance.h"

namespace strata {
namespace {

constexpr absl::Duration kLong = absl::Seconds(60);

struct EchoHandler : public DataHandler {
  void Handle(const Caller&, DataMethod, Buffer request, DataReply reply) override {
    reply(std::move(request));
  }
};

// A port that was free a moment ago, chosen by the system.
std::string FreeAddress() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(at);
  REQUIRE(bind(fd, reinterpret_cast<sockaddr*>(&at), size) == 0);
  REQUIRE(getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size) == 0);
  close(fd);
  return absl::StrCat("127.0.0.1:", ntohs(at.sin_port));
}

TEST_CASE("the gRPC transport conforms", "[transport][grpc]") {
  testing::RunTransportConformance(
      {[] { return MakeGrpcTransport(); }, FreeAddress, kMaxStatusTextBytes});
}

TEST_CASE("port 0 takes a free port and tells which", "[grpc]") {
  EchoHandler handler;
  const auto transport = MakeGrpcTransport();
  const auto a = transport->Listen("127.0.0.1:0", &handler);
  const auto b = transport->Listen("[::1]:0", &handler);
  REQUIRE(a.ok());
  CHECK((*a)->address().substr(0, 10) == "127.0.0.1:");
  CHECK((*a)->address() != "127.0.0.1:0");
  if (b.ok()) {  // where IPv6 exists
    CHECK(transport->Connect({(*b)->address(), "s"}, Caller::Nobody())
              ->CallAndWait(DataMethod::kPull, Buffer(), kLong)
              .ok());
  }
}

TEST_CASE("addresses that cannot be listened on are refused with the reason", "[grpc]") {
  EchoHandler handler;
  const auto transport = MakeGrpcTransport();
  const auto refused = [&](const std::string& address, absl::StatusCode code) {
    const absl::Status s = transport->Listen(address, &handler).status();
    INFO(s.ToString());
    CHECK(s.code() == code);
    CHECK(std::string(s.message()).find(address) != std::string::npos);
  };
  refused("0.0.0.0:0", absl::StatusCode::kPermissionDenied);
  refused("nonsense", absl::StatusCode::kInvalidArgument);
  const auto open = MakeGrpcTransport({.scope = BindScope::kAnywhereInsecure});
  // TEST-NET-1 (RFC 5737): no machine's own address.
  const absl::Status s = open->Listen("192.0.2.1:0", &handler).status();
  INFO(s.ToString());
  CHECK(s.code() == absl::StatusCode::kInvalidArgument);
  CHECK(open->Listen("0.0.0.0:0", &handler).ok());
}

TEST_CASE("values on a device do not leave the process", "[grpc]") {
  struct Offering : public DataHandler {
    void Handle(const Caller&, DataMethod, Buffer, DataReply reply) override {
      ++calls;
      BufferBuilder builder(8);
      reply(builder.Finish().With(values));
    }
    std::atomic<int> calls{0};
    std::shared_ptr<DeviceValues> values = std::make_shared<DeviceValues>();
  };
  Offering handler;
  handler.values->device = "GPU-1";
  const auto transport = MakeGrpcTransport();
  const auto listener = transport->Listen("127.0.0.1:0", &handler);
  REQUIRE(listener.ok());
  const auto channel = transport->Connect({(*listener)->address(), "s"}, Caller::Nobody());
  BufferBuilder builder(100);
  const Buffer plain = builder.Finish();
  const auto refused =
      channel->CallAndWait(DataMethod::kPush, plain.With(handler.values), absl::Seconds(60));
  CHECK(absl::IsInvalidArgument(refused.status()));
  CHECK_THAT(std::string(refused.status().message()), Catch::Contains("GPU-1"));
  CHECK(handler.calls == 0);
  const auto answer = channel->CallAndWait(DataMethod::kOpenSession, plain, absl::Seconds(60));
  REQUIRE(answer.ok());
  CHECK(answer->size() == 8);
  CHECK(answer->device_values() == nullptr);
  CHECK(handler.calls == 1);
}

// In milliseconds.
int ArgumentOf(const grpc::ChannelArguments& arguments, const std::string& name) {
  const grpc_channel_args all = arguments.c_channel_args();
  for (size_t i = 0; i < all.num_args; ++i) {
    if (all.args[i].key == name && all.args[i].type == GRPC_ARG_INTEGER) {
      return all.args[i].value.integer;
    }
  }
  return -1;
}

// gRPC itself spreads a pause by a fifth, which leaves a thousand clients on each other's heels.
TEST_CASE("each channel draws its own pauses between reconnections", "[grpc]") {
  for (const char* name :
       {GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, GRPC_ARG_MAX_RECONNECT_BACKOFF_MS}) {
    INFO(name);
    std::map<int, int> drawn;  // how often
    for (int i = 0; i < 1000; ++i) ++drawn[ArgumentOf(GrpcChannelArguments(), name)];
    const int least = drawn.begin()->first, most = drawn.rbegin()->first;
    CHECK(least > 0);
    CHECK(most > 2 * least);  // a third to three thirds, but for the ends
    CHECK(most <= 1000);      // a restarted server is found again within a second
    int often = 0;
    for (const auto& [ms, times] : drawn) often = std::max(often, times);
    CHECK(often < 100);
  }
}

TEST_CASE("more calls than the limit are refused", "[grpc]") {
  struct Holding : public DataHandler {
    void Handle(const Caller&, DataMethod, Buffer, DataReply reply) override {
      held.push_back(std::move(reply));
      if (held.size() == 2) full.Notify();
    }
    std::vector<DataReply> held;
    absl::Notification full;
  } handler;
  const auto transport = MakeGrpcTransport({.server_threads = 1, .max_calls_in_flight = 2});
  const auto listener = transport->Listen("127.0.0.1:0", &handler);
  const auto channel = transport->Connect({(*listener)->address(), "s"}, Caller::Nobody());
  absl::Notification answered;
  for (int i = 0; i < 2; ++i) {
    channel->Call(DataMethod::kPull, Buffer(), kLong, [](absl::StatusOr<Buffer>) {});
  }
  handler.full.WaitForNotification();
  const auto third = channel->CallAndWait(DataMethod::kPull, Buffer(), kLong);
  CHECK(third.status().code() == absl::StatusCode::kResourceExhausted);
  CHECK(std::string(third.status().message()).find("2 calls") != std::string::npos);
}

TEST_CASE("a request that there is no memory for is refused to its caller alone", "[grpc]") {
  EchoHandler handler;
  const auto transport = MakeGrpcTransport({.server_threads = 1});
  const auto listener = transport->Listen("127.0.0.1:0", &handler);
  const auto channel = transport->Connect({(*listener)->address(), "s"}, Caller::Nobody());
  const std::vector<uint8_t> bytes(100'000, 7);
  {
    const ScopedFailpoint none(
        "grpc.memory", {.act = FailWith(absl::ResourceExhaustedError("no memory")), .hits = 1});
    const auto refused = channel->CallAndWait(DataMethod::kPull, Buffer::CopyOf(bytes), kLong);
    CHECK(absl::IsResourceExhausted(refused.status()));
    CHECK(refused.status().message() == "no memory");
  }
  const auto served = channel->CallAndWait(DataMethod::kPull, Buffer::CopyOf(bytes), kLong);
  REQUIRE(served.ok());
  CHECK(served->size() == bytes.size());
}

// What a client in another language does, with nothing of ours but the schema.
TEST_CASE("any gRPC client can call the data plane and the health service", "[grpc]") {
  struct OpenHandler : public DataHandler {
    void Handle(const Caller&, DataMethod method, Buffer request, DataReply reply) override {
      const auto view = wire::ParseOpenSessionRequest(request.span());
      if (!view.ok()) return reply(view.status());
      if (method != DataMethod::kOpenSession) return reply(absl::InternalError("wrong method"));
      wire::OpenSessionReply answer;
      answer.state.incarnation = view->header.session.value + 1;
      reply(wire::EncodeOpenSessionReply(answer));
    }
  } handler;
  const auto transport = MakeGrpcTransport();
  const auto listener = transport->Listen("127.0.0.1:0", &handler);
  grpc::GenericStub stub(
      grpc::CreateChannel((*listener)->address(), grpc::InsecureChannelCredentials()));
  const auto call = [&stub](const std::string& path, const std::string& request,
                            std::string& reply) {
    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    const grpc::Slice slice(request);
    const grpc::ByteBuffer sent(&slice, 1);
    auto reader = stub.PrepareUnaryCall(&context, path, sent, &queue);
    grpc::ByteBuffer got;
    grpc::Status status;
    reader->StartCall();
    reader->Finish(&got, &status, nullptr);
    void* tag;
    bool ok;
    REQUIRE(queue.Next(&tag, &ok));
    std::vector<grpc::Slice> slices;
    if (status.ok() && got.Dump(&slices).ok()) {
      for (const grpc::Slice& s : slices) reply.append(s.begin(), s.end());
    }
    return status;
  };

  OpenSessionRequest request;
  request.mutable_header()->set_session(41);
  std::string bytes;
  REQUIRE(call("/strata.DataPlane/OpenSession", request.SerializeAsString(), bytes).ok());
  OpenSessionReply reply;
  REQUIRE(reply.ParseFromString(bytes));
  CHECK(reply.state().incarnation() == 42);

  // A message that is none gets its own error, not gRPC's.
  const grpc::Status bad = call("/strata.DataPlane/OpenSession", "\x0a\x7f", bytes);
  CHECK(bad.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK(call("/strata.DataPlane/Nothing", "", bytes).error_code() ==
        grpc::StatusCode::UNIMPLEMENTED);

  std::string health;
  REQUIRE(call("/grpc.health.v1.Health/Check", "", health).ok());
  CHECK(health == "\x08\x01");  // status: SERVING
}

TEST_CASE("the methods are those of data.proto, in its order", "[grpc]") {
  const auto* service =
      google::protobuf::DescriptorPool::generated_pool()->FindServiceByName("strata.DataPlane");
  OpenSessionRequest::descriptor();  // links data.proto's descriptors
  REQUIRE(service != nullptr);
  REQUIRE(service->method_count() == kDataMethods);
  CHECK(service->method(static_cast<int>(DataMethod::kOpenSession))->name() == "OpenSession");
  CHECK(service->method(static_cast<int>(DataMethod::kPull))->name() == "Pull");
  CHECK(service->method(static_cast<int>(DataMethod::kPush))->name() == "Push");
  CHECK(service->method(static_cast<int>(DataMethod::kMark))->name() == "Mark");
  CHECK(service->method(static_cast<int>(DataMethod::kPrefetch))->name() == "Prefetch");
}

TEST_CASE("typed services share the data plane's port", "[grpc]") {
  struct Typed : public Scheduler::Service {
    grpc::Status GetJob(grpc::ServerContext*, const JobRef* request, JobStatus* reply) override {
      reply->set_job(request->job() + 1);
      return ToGrpc(request->job() == 0 ? absl::NotFoundError("no job 0") : absl::OkStatus());
    }
  } typed;
  EchoHandler handler;
  const auto transport = MakeGrpcTransport({.services = {&typed}});
  const auto listener = transport->Listen("127.0.0.1:0", &handler);
  REQUIRE(listener.ok());
  const std::string address = (*listener)->address();
  CHECK(transport->Connect({address, "s"}, Caller::Nobody())
            ->CallAndWait(DataMethod::kPull, Buffer(), kLong)
            .ok());
  const auto stub = Scheduler::NewStub(grpc::CreateCustomChannel(
      address, grpc::InsecureChannelCredentials(), GrpcChannelArguments()));
  JobRef ref;
  ref.set_job(6);
  JobStatus reply;
  grpc::ClientContext context;
  REQUIRE(stub->GetJob(&context, ref, &reply).ok());
  CHECK(reply.job() == 7);
  ref.set_job(0);
  grpc::ClientContext second;
  CHECK(FromGrpc(stub->GetJob(&second, ref, &reply)) == absl::NotFoundError("no job 0"));
}

// Reads the address that the child printed.
std::string ReadLine(int fd) {
  std::string line;
  char c;
  while (read(fd, &c, 1) == 1 && c != '\n') line += c;
  return line;
}

TEST_CASE("calls to a process that is killed end with UNAVAILABLE", "[grpc][process]") {
  int out[2];
  REQUIRE(pipe(out) == 0);
  const std::string helper = "tests/proto/runtime/transport/echo_server";
  const pid_t child = fork();
  if (child == 0) {
    dup2(out[1], STDOUT_FILENO);
    execl(helper.c_str(), helper.c_str(), nullptr);
    _exit(127);
  }
  close(out[1]);
  const std::string address = ReadLine(out[0]);
  REQUIRE(!address.empty());
  const auto transport = MakeGrpcTransport();
  const auto channel = transport->Connect({address, "s"}, Caller::Nobody());
  REQUIRE(channel->CallAndWait(DataMethod::kPull, Buffer(), kLong).ok());
  // Push is never answered by the helper; it prints a line when the call has arrived.
  absl::Notification answered;
  absl::Status status;
  channel->Call(DataMethod::kPush, Buffer(), kLong, [&](absl::StatusOr<Buffer> r) {
    status = r.status();
    answered.Notify();
  });
  CHECK(ReadLine(out[0]) == "holding");
  kill(child, SIGKILL);
  answered.WaitForNotification();
  INFO(status.ToString());
  CHECK(status.code() == absl::StatusCode::kUnavailable);
  CHECK(channel->CallAndWait(DataMethod::kPull, Buffer(), kLong).status().code() ==
        absl::StatusCode::kUnavailable);
  waitpid(child, nullptr, 0);
  close(out[0]);
}

TEST_CASE("channels that are dropped answer what is in flight", "[grpc]") {
  struct Holding : public DataHandler {
    void Handle(const Caller&, DataMethod, Buffer, DataReply reply) override {
      held = std::move(reply);
      arrived.Notify();
    }
    DataReply held;
    absl::Notification arrived;
  } handler;
  const auto server = MakeGrpcTransport();
  const auto listener = server->Listen("127.0.0.1:0", &handler);
  absl::Notification answered;
  absl::Status status;
  {
    auto client = MakeGrpcTransport();
    const auto channel = client->Connect({(*listener)->address(), "s"}, Caller::Nobody());
    client.reset();  // the channel goes on without it
    channel->Call(DataMethod::kPull, Buffer(), kLong, [&](absl::StatusOr<Buffer> r) {
      status = r.status();
      answered.Notify();
    });
    handler.arrived.WaitForNotification();
  }
  CHECK(answered.HasBeenNotified());
  CHECK(status.code() == absl::StatusCode::kUnavailable);
  handler.held(Buffer());
}

TEST_CASE("long error texts are cut, not lost", "[grpc]") {
  const grpc::Status s = ToGrpc(absl::InternalError(std::string(10'000, 'x')));
  CHECK(s.error_message().size() == kMaxStatusTextBytes);
  CHECK(s.error_message().substr(kMaxStatusTextBytes - 4) == "x...");
  CHECK(FromGrpc(grpc::Status::OK).ok());
}

}  // namespace
}  // namespace strata

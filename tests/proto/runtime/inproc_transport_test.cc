#include "proto/runtime/inproc_transport.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "absl/synchronization/notification.h"
#include "proto/core/device_values.h"
#include "proto/runtime/executor.h"
#include "tests/proto/runtime/transport_conformance.h"

namespace strata {
namespace {

std::string FreeName() {
  static std::atomic<int> next{0};
  return "server-" + std::to_string(++next);
}

TEST_CASE("the in-process transport conforms, in the caller's thread", "[transport]") {
  testing::RunTransportConformance({[] { return MakeInProcTransport(); }, FreeName, 100'000});
}

TEST_CASE("the in-process transport conforms, on an executor", "[transport]") {
  const std::unique_ptr<Executor> pool = MakeThreadPool(3, "handlers");
  testing::RunTransportConformance(
      {[&] { return MakeInProcTransport({.executor = pool.get()}); }, FreeName, 100'000});
}

struct EchoHandler : public DataHandler {
  void Handle(DataMethod, Buffer request, DataReply reply) override { reply(std::move(request)); }
};

TEST_CASE("inside a process messages are shared, not copied", "[transport]") {
  EchoHandler handler;
  const auto transport = MakeInProcTransport();
  const auto listener = transport->Listen("s", &handler);
  BufferBuilder builder(10'000);
  const Buffer sent = builder.Finish();
  const auto got =
      transport->Connect("s")->CallAndWait(DataMethod::kPull, sent, absl::InfiniteDuration());
  REQUIRE(got.ok());
  CHECK(got->data() == sent.data());
}

// Answers with the values that the request has beside its bytes, in a message of its own.
struct ValuesHandler : public DataHandler {
  void Handle(DataMethod, Buffer request, DataReply reply) override {
    BufferBuilder builder(8);
    reply(builder.Finish().With(request.device_values()));
  }
};

TEST_CASE("inside a process values on a device go with messages, both ways", "[transport]") {
  const std::unique_ptr<Executor> pool = MakeThreadPool(1, "handlers");
  for (Executor* executor : {static_cast<Executor*>(nullptr), pool.get()}) {
    ValuesHandler handler;
    const auto transport = MakeInProcTransport({.executor = executor});
    const auto listener = transport->Listen("s", &handler);
    const auto channel = transport->Connect("s");
    float there = 0;
    auto values = std::make_shared<DeviceValues>();
    values->device = "GPU-1";
    values->groups = {&there, nullptr};
    BufferBuilder builder(100);
    const Buffer plain = builder.Finish();
    const auto got =
        channel->CallAndWait(DataMethod::kPull, plain.With(values), absl::InfiniteDuration());
    REQUIRE(got.ok());
    CHECK(got->device_values() == values);
    const auto none = channel->CallAndWait(DataMethod::kPull, plain, absl::InfiniteDuration());
    REQUIRE(none.ok());
    CHECK(none->device_values() == nullptr);
  }
}

TEST_CASE("an executor decides when handlers run", "[transport]") {
  EchoHandler handler;
  ManualExecutor executor;
  const auto transport = MakeInProcTransport({.executor = &executor});
  auto listener = *transport->Listen("s", &handler);
  const auto channel = transport->Connect("s");
  int answers = 0;
  absl::Status last;
  const auto done = [&](absl::StatusOr<Buffer> r) {
    ++answers;
    last = r.status();
  };
  channel->Call(DataMethod::kPull, Buffer(), absl::InfiniteDuration(), done);
  CHECK(answers == 0);
  CHECK(executor.RunAll() == 1);
  CHECK(answers == 1);
  CHECK(last.ok());
  // What was posted and has not run when the listener closes is answered when it runs.
  channel->Call(DataMethod::kPull, Buffer(), absl::InfiniteDuration(), done);
  listener.reset();
  executor.RunAll();
  CHECK(answers == 2);
  CHECK(last.code() == absl::StatusCode::kUnavailable);
}

TEST_CASE("an empty name is no address", "[transport]") {
  EchoHandler handler;
  CHECK(MakeInProcTransport()->Listen("", &handler).status().code() ==
        absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace strata

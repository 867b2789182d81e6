#include "proto/runtime/transport/inproc_transport.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "proto/runtime/base/executor.h"
#include "proto/runtime/base/manual_timer.h"
#include "proto/wire/device_values.h"
#include "tests/proto/runtime/transport/transport_conformance.h"

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
  void Handle(const Caller&, DataMethod, Buffer request, DataReply reply) override {
    reply(std::move(request));
  }
};

TEST_CASE("inside a process messages are shared, not copied", "[transport]") {
  EchoHandler handler;
  const auto transport = MakeInProcTransport();
  const auto listener = transport->Listen("s", &handler);
  BufferBuilder builder(10'000);
  const Buffer sent = builder.Finish();
  const auto got = transport->Connect({"s", "s"}, Caller::Nobody())
                       ->CallAndWait(DataMethod::kPull, sent, absl::InfiniteDuration());
  REQUIRE(got.ok());
  CHECK(got->data() == sent.data());
}

// Answers with the values that the request has beside its bytes, in a message of its own.
struct ValuesHandler : public DataHandler {
  void Handle(const Caller&, DataMethod, Buffer request, DataReply reply) override {
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
    const auto channel = transport->Connect({"s", "s"}, Caller::Nobody());
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

// Keeps every call.
struct SilentHandler : public DataHandler {
  void Handle(const Caller&, DataMethod, Buffer, DataReply reply) override {
    kept.push_back(std::move(reply));
  }
  std::vector<DataReply> kept;
};

TEST_CASE("a call has had its time when the timer says so", "[transport]") {
  SilentHandler handler;
  ManualTimer timer;
  const auto transport = MakeInProcTransport({.timer = &timer});
  const auto listener = transport->Listen("s", &handler);
  const auto channel = transport->Connect({"s", "s"}, Caller::Nobody());
  const absl::Time start = timer.Now();
  absl::Notification first, second;
  absl::Status status;
  channel->Call(DataMethod::kPull, Buffer(), absl::Seconds(30), [&](absl::StatusOr<Buffer> r) {
    status = r.status();
    second.Notify();
  });
  timer.AwaitAlarms(1);
  CHECK(timer.next() == start + absl::Seconds(30));
  // A shorter one comes first.
  channel->Call(DataMethod::kPull, Buffer(), absl::Seconds(3),
                [&](absl::StatusOr<Buffer>) { first.Notify(); });
  while (timer.next() != start + absl::Seconds(3)) std::this_thread::yield();
  timer.AdvanceTo(start + absl::Seconds(3));
  first.WaitForNotification();
  CHECK_FALSE(second.HasBeenNotified());
  timer.AwaitAlarms(1);
  timer.AdvanceTo(start + absl::Seconds(30));
  second.WaitForNotification();
  CHECK(absl::IsDeadlineExceeded(status));
  CHECK(status.message() == "no reply within 30s");
}

TEST_CASE("an executor decides when handlers run", "[transport]") {
  EchoHandler handler;
  ManualExecutor executor;
  const auto transport = MakeInProcTransport({.executor = &executor});
  auto listener = *transport->Listen("s", &handler);
  const auto channel = transport->Connect({"s", "s"}, Caller::Nobody());
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

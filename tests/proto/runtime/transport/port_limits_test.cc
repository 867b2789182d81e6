// What somebody who connects, calls or reads as he should not costs the others: nothing.
#include "proto/runtime/transport/port_limits.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/core/mutex.h"
#include "proto/runtime/credentials/identity.h"
#include "proto/runtime/transport/grpc_transport.h"
#include "proto/runtime/transport/process_tls.h"
#include "proto/runtime/transport/transport.h"
#include "proto/wire/buffer.h"
#include "tests/proto/runtime/transport/raw_sockets.h"
#include "tests/proto/runtime/transport/silent_proxy.h"
#include "tests/proto/runtime/transport/test_certs.h"
#include "tests/proto/runtime/transport/unread_calls.h"

namespace strata::testing {
namespace {

// Before gRPC looks, and before there are threads: as a main program does it.
[[maybe_unused]] const bool kAllowed = (AllowTls13Alone(), true);

constexpr absl::Duration kPatience = absl::Seconds(60);
constexpr uint64_t kLongReply = uint64_t{1} << 20;

// Answers pulls with a long reply and marks with none, holds pushes.
class Answers : public DataHandler {
 public:
  void Handle(const Caller&, DataMethod method, Buffer, DataReply reply) override {
    if (method == DataMethod::kPush) {
      MutexLock lock(&mu_);
      return held_.push_back(std::move(reply));
    }
    if (method == DataMethod::kMark) return reply(Buffer());
    reply(Buffer::CopyOf(std::vector<uint8_t>(kLongReply)));
    MutexLock lock(&mu_);
    ++answered_;
  }
  void AwaitAnswered(int count) {
    MutexLock lock(&mu_);
    const auto enough = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return answered_ >= count; };
    mu_.Await(absl::Condition(&enough));
  }

 private:
  Mutex mu_;
  int answered_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<DataReply> held_ ABSL_GUARDED_BY(mu_);
};

std::shared_ptr<ProcessTls> Open(const std::string& folder) {
  auto tls = ProcessTls::Open({.folder = folder});
  INFO(tls.status());
  REQUIRE(tls.ok());
  return *std::move(tls);
}

class Port {
 public:
  explicit Port(const PortLimits& limits, const CallerLimitsOptions& callers = {})
      : transport_(MakeGrpcTransport({.caller_limits = callers,
                                      .port_limits = limits,
                                      .tls = Open(certs.Issue(Role::kServer, "alpha"))})) {
    auto listener = transport_->Listen("127.0.0.1:0", &handler);
    REQUIRE(listener.ok());
    listener_ = *std::move(listener);
  }
  std::string address() const { return listener_->address(); }

  const Certs certs;
  Answers handler;

 private:
  const std::unique_ptr<DataTransport> transport_;
  std::unique_ptr<DataListener> listener_;
};

// One worker with a connection of its own.
class Calling {
 public:
  Calling(const Port& port, const std::string& name)
      : Calling(port.address(), Open(port.certs.Issue(Role::kWorker, name))) {}
  Calling(const std::string& address, const std::shared_ptr<ProcessTls>& tls)
      : tls_(tls),
        transport_(MakeGrpcTransport({.tls = tls_})),
        channel_(transport_->Connect({address, "alpha"}, SelfOf(tls_))) {}

  absl::Status Call(DataMethod method = DataMethod::kPull) {
    return channel_->CallAndWait(method, Buffer(), kPatience).status();
  }
  // As who trains would: again and again, until it is answered.
  absl::Status CallUntilAnswered() {
    const absl::Time give_up = absl::Now() + kPatience;
    absl::Status last = Call();
    while (!last.ok() && absl::Now() < give_up) last = Call();
    return last;
  }
  const std::shared_ptr<ProcessTls>& tls() const { return tls_; }

 private:
  const std::shared_ptr<ProcessTls> tls_;
  const std::unique_ptr<DataTransport> transport_;
  const std::shared_ptr<DataChannel> channel_;
};

TEST_CASE("a port has so many connections; who was there before goes on", "[ports]") {
  const Port port({.connections = 4});
  Calling first(port, "w");
  REQUIRE(first.Call().ok());
  std::optional<std::vector<RawSocket>> idle(std::in_place);
  for (int i = 0; i < 3; ++i) idle->emplace_back(port.address());
  for (int i = 0; i < 20; ++i) {
    RawSocket beyond(port.address());
    CHECK(beyond.AwaitEnd());
  }
  CHECK(first.Call().ok());
  Calling second(port, "v");
  CHECK(absl::IsUnavailable(second.Call()));
  // Places are free again when connections have ended.
  idle.reset();
  CHECK(second.CallUntilAnswered().ok());
  CHECK(first.Call().ok());
}

TEST_CASE("a handshake that does not end is closed", "[ports]") {
  const Port port({.handshake_time = absl::Milliseconds(300)});
  Calling caller(port, "w");
  REQUIRE(caller.Call().ok());
  RawSocket says_nothing(port.address());
  RawSocket says_half(port.address());
  // A record of TLS, a ClientHello of 512 bytes, of which a few come.
  says_half.Send(std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11));
  CHECK(says_nothing.AwaitEnd());
  CHECK(says_half.AwaitEnd());
  CHECK(caller.Call().ok());
}

// Of short replies: what of a long one is still in the kernel when a server closes its socket, the
// kernel drops where the client has sent something meanwhile.
TEST_CASE("an old connection is made anew, and no call fails by that", "[ports]") {
  const Port port({.connection_age = absl::Milliseconds(300)});
  const SilentProxy between(port.address());
  Calling caller(between.address(), Open(port.certs.Issue(Role::kWorker, "w")));
  REQUIRE(caller.CallUntilAnswered().ok());
  const absl::Time give_up = absl::Now() + kPatience;
  while (between.connections() < 5 && absl::Now() < give_up) {
    const absl::Status s = caller.Call(DataMethod::kMark);
    INFO(s);
    REQUIRE(s.ok());
  }
  CHECK(between.connections() >= 5);
}

TEST_CASE("a call that is held outlives no connection that is old", "[ports]") {
  const Port port(
      {.connection_age = absl::Milliseconds(300), .connection_grace = absl::Milliseconds(300)});
  Calling caller(port, "w");
  const absl::Status s = caller.Call(DataMethod::kPush);
  INFO(s);
  CHECK(absl::IsUnavailable(s));
}

TEST_CASE("replies that are not read are their caller's bytes in flight", "[ports]") {
  Port port({}, {.bytes_in_flight = 3 * kLongReply});
  Calling reads(port, "w"), other(port, "v");
  {
    UnreadCalls unread(reads.tls(), port.address(), Role::kServer);
    for (int i = 0; i < 3; ++i) unread.Call("/strata.DataPlane/Pull", "");
    port.handler.AwaitAnswered(3);
    const absl::Status s = reads.Call();
    INFO(s);
    CHECK(absl::IsResourceExhausted(s));
    CHECK(absl::StrContains(s.message(), "worker/w"));
    CHECK(other.Call().ok());
  }
  CHECK(reads.CallUntilAnswered().ok());
}

}  // namespace
}  // namespace strata::testing

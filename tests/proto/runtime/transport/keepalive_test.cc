// Peers that fall silent without closing their connections: how soon that is noticed.
#include "proto/runtime/transport/keepalive.h"

#include <catch2/catch.hpp>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "proto/runtime/base/timer.h"
#include "proto/runtime/transport/grpc_scheduler_client.h"
#include "proto/runtime/transport/grpc_transport.h"
#include "proto/runtime/transport/transport.h"
#include "proto/strata/control.pb.h"
#include "proto/wire/buffer.h"
#include "scheduler/scheduler_service.h"
#include "tests/proto/runtime/transport/silent_proxy.h"
#include "tests/proto/runtime/transport/unanswered_scheduler.h"

namespace strata {
namespace {

// A lease passes until silence is noticed; so long that a busy machine does not take another one,
// and two of them are less than what the default lease takes.
constexpr uint32_t kLeaseMs = 4000;
constexpr absl::Duration kTwoLeases = absl::Milliseconds(2 * kLeaseMs);
static_assert(kTwoLeases < KnownLease::kDefault);
constexpr absl::Duration kLong = absl::Seconds(60);

// How long `call` takes, which must end as one to a peer that is gone.
template <typename Call>
absl::Duration UntilNoticed(const Call& call) {
  const absl::Time begin = Timer::Real()->Now();
  const absl::Status status = call();
  INFO(status);
  CHECK(absl::IsUnavailable(status));
  return Timer::Real()->Now() - begin;
}

// Answers a pull, and keeps pushes.
class Keeper : public DataHandler {
 public:
  void Handle(const Caller&, DataMethod method, Buffer request, DataReply reply) override {
    if (method == DataMethod::kPull) return reply(std::move(request));
    absl::MutexLock lock(&mu_);
    kept_.push_back(std::move(reply));
  }
  void AwaitOne() {
    absl::MutexLock lock(&mu_);
    const auto any = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return !kept_.empty(); };
    mu_.Await(absl::Condition(&any));
  }

 private:
  absl::Mutex mu_;
  std::vector<DataReply> kept_ ABSL_GUARDED_BY(mu_);
};

TEST_CASE("a worker notices within two leases that its server fell silent", "[keepalive]") {
  KnownLease lease;
  lease.Learn(kLeaseMs);
  Keeper keeper;
  const auto transport = MakeGrpcTransport({.lease = &lease});
  const auto listener = transport->Listen("127.0.0.1:0", &keeper);
  REQUIRE(listener.ok());
  testing::SilentProxy proxy((*listener)->address());
  const auto channel = transport->Connect({proxy.address(), "s"}, Caller::Nobody());
  REQUIRE(channel->CallAndWait(DataMethod::kPull, Buffer(), kLong).ok());
  absl::Notification pushed;
  absl::Status push;
  channel->Call(DataMethod::kPush, Buffer(), kLong, [&](absl::StatusOr<Buffer> reply) {
    push = reply.status();
    pushed.Notify();
  });
  keeper.AwaitOne();
  proxy.FallSilent();
  // One that is in flight already, and one that is sent into the silence.
  const absl::Duration noticed = UntilNoticed(
      [&] { return channel->CallAndWait(DataMethod::kPull, Buffer(), kLong).status(); });
  CHECK(noticed <= kTwoLeases);
  pushed.WaitForNotification();
  CHECK(absl::IsUnavailable(push));
}

TEST_CASE("a peer that only takes its time is not given up, however often it is asked",
          "[keepalive]") {
  KnownLease lease;
  lease.Learn(2000);
  Keeper keeper;
  const auto transport = MakeGrpcTransport({.lease = &lease});
  const auto listener = transport->Listen("127.0.0.1:0", &keeper);
  REQUIRE(listener.ok());
  const auto channel = transport->Connect({(*listener)->address(), "s"}, Caller::Nobody());
  // Asked every second: by default gRPC's servers throw out who has done that five times.
  const absl::Duration patience = absl::Milliseconds(5500);
  CHECK(absl::IsDeadlineExceeded(
      channel->CallAndWait(DataMethod::kPush, Buffer(), patience).status()));
  CHECK(channel->CallAndWait(DataMethod::kPull, Buffer(), kLong).ok());
}

// Answers who asks first, and then nobody until it is ended.
class SilentScheduler : public testing::UnansweredScheduler {
 public:
  absl::StatusOr<NodeDirective> Sync(const NodeReport& report, absl::Duration) override {
    if (report.session() != 0) end.WaitForNotification();
    NodeDirective directive;
    directive.set_session(1);
    return directive;
  }
  absl::StatusOr<JobStatus> GetJob(const JobRef&, absl::Duration) override {
    return absl::NotFoundError("no such job");
  }
  absl::StatusOr<CreateCheckpointReply> CreateCheckpoint(const CreateCheckpointRequest&,
                                                         absl::Duration) override {
    end.WaitForNotification();
    return absl::CancelledError();
  }

  absl::Notification end;
};

TEST_CASE("a node notices within two leases that its scheduler fell silent", "[keepalive]") {
  SilentScheduler scheduler;
  auto service = scheduler::SchedulerService::Start(
      {.scheduler = &scheduler, .lease = absl::Milliseconds(kLeaseMs)});
  REQUIRE(service.ok());
  testing::SilentProxy proxy((*service)->address());
  KnownLease lease;
  const auto client = MakeGrpcSchedulerClient(proxy.address(), nullptr, &lease);
  REQUIRE(client->Sync(NodeReport(), kLong).ok());
  CHECK(lease.get() == absl::Milliseconds(kLeaseMs));
  // What it has heard of the lease is for a connection of its own.
  REQUIRE(client->Sync(NodeReport(), kLong).ok());
  CHECK(proxy.connections() == 2);
  proxy.FallSilent();
  NodeReport report;
  report.set_session(1);
  CHECK(UntilNoticed([&] { return client->Sync(report, kLong).status(); }) <= kTwoLeases);
  scheduler.end.Notify();
}

// As a command line, which is no node: the first answer, be it an error, tells it the lease.
TEST_CASE("a user's command notices within two leases that its scheduler fell silent",
          "[keepalive]") {
  SilentScheduler scheduler;
  auto service = scheduler::SchedulerService::Start(
      {.scheduler = &scheduler, .lease = absl::Milliseconds(kLeaseMs)});
  REQUIRE(service.ok());
  testing::SilentProxy proxy((*service)->address());
  const auto client = MakeGrpcSchedulerClient(proxy.address(), nullptr);
  REQUIRE(absl::IsNotFound(client->GetJob(JobRef(), kLong).status()));
  // By a connection of the lease that it has learnt.
  REQUIRE(absl::IsNotFound(client->GetJob(JobRef(), kLong).status()));
  CHECK(proxy.connections() == 2);
  proxy.FallSilent();
  CHECK(UntilNoticed([&] {
          return client->CreateCheckpoint(CreateCheckpointRequest(), kLong).status();
        }) <= kTwoLeases);
  scheduler.end.Notify();
}

TEST_CASE("half a lease of silence is asked about, and half a lease is waited", "[keepalive]") {
  const Keepalive ten = Keepalive::For(KnownLease().get());
  CHECK(ten.quiet == absl::Seconds(5));
  CHECK(ten.patience == absl::Seconds(5));
  CHECK(Keepalive::For(absl::Milliseconds(10)).quiet == absl::Seconds(1));
}

}  // namespace
}  // namespace strata

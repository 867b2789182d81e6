// Who is called is verified at each call, and not when the connection is made alone.
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/core/mutex.h"
#include "proto/runtime/credentials/identity.h"
#include "proto/runtime/credentials/identity_files.h"
#include "proto/runtime/credentials/places.h"
#include "proto/runtime/credentials/revocations.h"
#include "proto/runtime/credentials/scheduler_handshake.h"
#include "proto/runtime/transport/grpc_scheduler_client.h"
#include "proto/runtime/transport/grpc_transport.h"
#include "proto/runtime/transport/process_tls.h"
#include "proto/runtime/transport/transport.h"
#include "proto/strata/control.pb.h"
#include "proto/wire/buffer.h"
#include "scheduler/scheduler.h"
#include "scheduler/scheduler_service.h"
#include "scheduler/store/memory_metadata_store.h"
#include "tests/proto/runtime/transport/called_server.h"
#include "tests/proto/runtime/transport/test_certs.h"

namespace strata::testing {
namespace {

// Before gRPC looks, and before there are threads: as a main program does it.
[[maybe_unused]] const bool kAllowed = (AllowTls13Alone(), true);

constexpr absl::Duration kPatience = absl::Seconds(60);

// Answers pulls, holds pushes.
class Holding : public DataHandler {
 public:
  void Handle(const Caller&, DataMethod method, Buffer, DataReply reply) override {
    MutexLock lock(&mu_);
    ++calls_;
    if (method == DataMethod::kPush) return held_.push_back(std::move(reply));
    reply(Buffer());
  }
  DataReply AwaitHeld() {
    MutexLock lock(&mu_);
    const auto there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return !held_.empty(); };
    mu_.Await(absl::Condition(&there));
    return held_.back();
  }
  int calls() {
    MutexLock lock(&mu_);
    return calls_;
  }

 private:
  Mutex mu_;
  int calls_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<DataReply> held_ ABSL_GUARDED_BY(mu_);
};

// Looks at its files each second.
std::shared_ptr<ProcessTls> Open(const Certs& certs, Role role, const std::string& name) {
  certs.Issue(role, name);
  auto tls =
      ProcessTls::Open({.folder = CurrentFolder(certs.folder(), role, name), .refresh_seconds = 1});
  INFO(tls.status());
  REQUIRE(tls.ok());
  return *std::move(tls);
}

Revocations Revoked(const std::shared_ptr<ProcessTls>& whose) {
  Revocations revoked;
  revoked.Add(whose->source()->Current()->certificate.facts.serial,
              {Describe(whose->self()), absl::Now()});
  return revoked;
}

void Renew(const Certs& certs, Role role, const std::string& name) {
  REQUIRE(
      RenewIdentity(certs.folder(), {.role = role, .name = name, .days = 10}, absl::Now()).ok());
}

TEST_CASE("a server whose certificate was revoked is sent nothing more, and is not believed",
          "[tls]") {
  const Certs certs;
  const auto server = Open(certs, Role::kServer, "alpha"), worker = Open(certs, Role::kWorker, "w");
  Holding handler;
  CalledServer called(server, worker, &handler);
  const auto call = [&] { return called.Pull(kPatience); };
  REQUIRE(call().ok());
  absl::Notification answered;
  absl::Status held;
  called.channel().Call(DataMethod::kPush, Buffer(), kPatience, [&](absl::StatusOr<Buffer> reply) {
    held = reply.status();
    answered.Notify();
  });
  const DataReply reply = handler.AwaitHeld();

  worker->source()->SetRevoked(Revoked(server));
  reply(Buffer());
  answered.WaitForNotification();
  INFO(held);
  CHECK(absl::IsUnavailable(held));
  CHECK(absl::StrContains(held.message(), "it was revoked"));
  const int before = handler.calls();
  const absl::Status next = call();
  INFO(next);
  CHECK(absl::IsUnavailable(next));
  CHECK(absl::StrContains(next.message(), "it was revoked"));
  CHECK(handler.calls() == before);

  // The same channel goes on with a server that has a good one.
  Renew(certs, Role::kServer, "alpha");
  const absl::Time give_up = absl::Now() + kPatience;
  absl::Status last = call();
  while (!last.ok() && absl::Now() < give_up) last = call();
  INFO(last);
  CHECK(last.ok());
}

TEST_CASE("a scheduler whose certificate was revoked hears no report", "[tls]") {
  const Certs certs;
  const auto control = Open(certs, Role::kScheduler, "s"), worker = Open(certs, Role::kWorker, "w");
  auto started = scheduler::Scheduler::Start({.store = scheduler::MakeMemoryMetadataStore(),
                                              .tick_interval = absl::ZeroDuration(),
                                              .credentials = control->source()});
  REQUIRE(started.ok());
  const auto service = scheduler::SchedulerService::Start(
      {.scheduler = started->get(), .tls = control, .owners = started->get()});
  REQUIRE(service.ok());
  const auto client = MakeGrpcSchedulerClient((*service)->address(), worker);
  NodeReport report;
  report.set_name("w");
  report.set_role(WORKER);
  report.set_incarnation(1);
  REQUIRE(client->Sync(report, kPatience).ok());
  const uint64_t heard = (*started)->Counters().syncs;

  worker->source()->SetRevoked(Revoked(control));
  const absl::Status s = client->Sync(report, absl::Seconds(1)).status();
  INFO(s);
  CHECK(absl::IsUnavailable(s));
  CHECK((*started)->Counters().syncs == heard);

  Renew(certs, Role::kScheduler, "s");
  const absl::Time give_up = absl::Now() + kPatience;
  absl::Status last = client->Sync(report, kPatience).status();
  while (!last.ok() && absl::Now() < give_up) last = client->Sync(report, kPatience).status();
  INFO(last);
  CHECK(last.ok());
  (*started)->Stop();
}

TEST_CASE("who was revoked is let in again with a renewed certificate, by the same channel",
          "[tls]") {
  const Certs certs;
  const auto server = Open(certs, Role::kServer, "alpha"), worker = Open(certs, Role::kWorker, "w");
  Holding handler;
  CalledServer called(server, worker, &handler);
  const auto call = [&] { return called.Pull(kPatience); };
  REQUIRE(call().ok());
  server->source()->SetRevoked(Revoked(worker));
  const absl::Status refused = call();
  INFO(refused);
  REQUIRE(absl::IsUnauthenticated(refused));
  Renew(certs, Role::kWorker, "w");
  const absl::Time give_up = absl::Now() + kPatience;
  absl::Status last = call();
  while (!last.ok() && absl::Now() < give_up) last = call();
  INFO(last);
  CHECK(last.ok());
}

TEST_CASE("who takes a server for the scheduler is told which address he needs", "[tls]") {
  const Certs certs;
  const auto server = Open(certs, Role::kServer, "alpha"), worker = Open(certs, Role::kWorker, "w");
  Holding handler;
  {
    const auto serving = MakeGrpcTransport({});
    const auto listener = serving->Listen("127.0.0.1:0", &handler);
    REQUIRE(listener.ok());
    const absl::Status s =
        MakeGrpcSchedulerClient((*listener)->address(), nullptr)->GetCluster(kPatience).status();
    INFO(s);
    CHECK(absl::IsUnavailable(s));
    CHECK(absl::StrContains(s.message(), "no scheduler answers at " + (*listener)->address()));
    CHECK(absl::StrContains(s.message(), "--scheduler HOST:PORT"));
  }
  const auto serving = MakeGrpcTransport({.tls = server});
  const auto listener = serving->Listen("127.0.0.1:0", &handler);
  REQUIRE(listener.ok());
  const absl::Status s = WhyNoHandshake((*listener)->address(), worker->source());
  INFO(s);
  CHECK(absl::IsPermissionDenied(s));
  CHECK(absl::StrContains(s.message(), (*listener)->address() + " is no scheduler's address"));
  CHECK(absl::StrContains(s.message(), "it is for server/alpha"));
  CHECK(absl::StrContains(s.message(), "--scheduler HOST:PORT"));
  CHECK_FALSE(absl::StrContains(s.message(), "use that one's certificate"));
}

TEST_CASE("a process of another name than its certificate is told how to have that name", "[tls]") {
  const Certs certs;
  certs.Issue(Role::kServer, "alpha");
  const std::string folder = CurrentFolder(certs.folder(), Role::kServer, "alpha");
  const auto named = [&](Role role) {
    return ProcessTls::Open({.folder = folder, .role = role, .name = "server-17"}).status();
  };
  INFO(named(Role::kServer));
  CHECK(absl::StrContains(named(Role::kServer).message(),
                          "this process is server/server-17; start it with --name alpha, or issue "
                          "one for it: strata certs issue server server-17"));
  INFO(named(Role::kWorker));
  CHECK_FALSE(absl::StrContains(named(Role::kWorker).message(), "--name"));
}

}  // namespace
}  // namespace strata::testing

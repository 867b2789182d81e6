// Certificates that are renewed while calls are made: five times, each old one expired before the
// next handshake.
#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/runtime/base/clock.h"
#include "proto/runtime/base/manual_clock.h"
#include "proto/runtime/credentials/identity.h"
#include "proto/runtime/credentials/identity_files.h"
#include "proto/runtime/credentials/places.h"
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

struct Counting : public DataHandler {
  void Handle(const Caller& caller, DataMethod, Buffer, DataReply reply) override {
    // gRPC's threads take turns; one call is made at a time.
    CHECK(caller.asked);
    CHECK(caller.name == "w");
    reply(Buffer());
  }
};

// One end, whose files are looked at each second.
std::shared_ptr<ProcessTls> Open(const Certs& certs, Role role, const std::string& name,
                                 Clock* clock) {
  auto tls = ProcessTls::Open({.folder = CurrentFolder(certs.folder(), role, name),
                               .role = role,
                               .name = name,
                               .clock = clock,
                               .refresh_seconds = 1});
  INFO(tls.status());
  REQUIRE(tls.ok());
  return *std::move(tls);
}

TEST_CASE("five renewals under traffic, each old certificate expired before a new handshake",
          "[tls]") {
  const Certs certs;
  certs.Issue(Role::kServer, "alpha", absl::Now(), 1);
  certs.Issue(Role::kWorker, "w", absl::Now(), 1);
  // What is good for days is good by the machine's clock all along: this one decides.
  ManualClock clock(absl::Now());
  const auto server = Open(certs, Role::kServer, "alpha", &clock);
  const auto worker = Open(certs, Role::kWorker, "w", &clock);
  Counting handler;
  const auto serving = MakeGrpcTransport({.tls = server});
  const auto listener = serving->Listen("127.0.0.1:0", &handler);
  REQUIRE(listener.ok());
  const auto calling = MakeGrpcTransport({.tls = worker});
  std::shared_ptr<DataChannel> channel;
  // A handshake, with the certificates that the ends have by then.
  const auto connect = [&] {
    channel = calling->Connect({(*listener)->address(), "alpha"}, SelfOf(worker));
  };
  const auto call = [&] {
    return channel->CallAndWait(DataMethod::kPull, Buffer(), kPatience).status();
  };
  // As who trains would: again and again, until it is answered.
  const auto traffic = [&] {
    const absl::Time give_up = absl::Now() + kPatience;
    absl::Status last = call();
    while (!last.ok() && absl::Now() < give_up) {
      // gRPC has not looked at one end's files yet.
      CHECK((absl::IsUnauthenticated(last) || absl::IsUnavailable(last)));
      connect();
      last = call();
    }
    INFO(last);
    REQUIRE(last.ok());
  };
  connect();
  traffic();
  for (int renewal = 1; renewal <= 5; ++renewal) {
    const std::string serial = worker->source()->Current()->certificate.facts.serial;
    const absl::Time expires = worker->source()->Current()->certificate.facts.valid.until;
    for (const auto& [role, name] :
         {std::pair(Role::kServer, "alpha"), std::pair(Role::kWorker, "w")}) {
      REQUIRE(RenewIdentity(certs.folder(), {.role = role, .name = name, .days = 1 + renewal},
                            absl::Now())
                  .ok());
    }
    traffic();
    clock.Advance(absl::Hours(24) + absl::Minutes(1));
    REQUIRE(clock.Now() > expires);
    // Whose certificate was met has expired: the channel makes its connection anew by itself.
    const absl::Time give_up = absl::Now() + kPatience;
    absl::Status next = call();
    while (!next.ok() && absl::Now() < give_up) {
      CHECK(absl::IsUnavailable(next));
      next = call();
    }
    INFO(next);
    REQUIRE(next.ok());
    CHECK(worker->source()->Current()->certificate.facts.serial != serial);
    CHECK(worker->source()->problem().ok());
    CHECK(server->source()->problem().ok());
  }
}

TEST_CASE("what is put in the place of a good certificate is not shown while it is no good",
          "[tls]") {
  const Certs certs(kTlsCluster, absl::Now() - absl::Hours(24 * 30));
  certs.Issue(Role::kServer, "alpha");
  certs.Issue(Role::kWorker, "w");
  const auto server = Open(certs, Role::kServer, "alpha", Clock::Real());
  const auto worker = Open(certs, Role::kWorker, "w", Clock::Real());
  Counting handler;
  const auto serving = MakeGrpcTransport({.tls = server});
  const auto listener = serving->Listen("127.0.0.1:0", &handler);
  REQUIRE(listener.ok());
  const auto calling = MakeGrpcTransport({.tls = worker});
  // With a handshake of its own.
  const auto call = [&] {
    return calling->Connect({(*listener)->address(), "alpha"}, SelfOf(worker))
        ->CallAndWait(DataMethod::kPull, Buffer(), kPatience)
        .status();
  };
  REQUIRE(call().ok());
  const auto renew = [&](Role role, const std::string& name, absl::Time made) {
    REQUIRE(RenewIdentity(certs.folder(), {.role = role, .name = name, .days = 10}, made).ok());
  };
  // They have the right names and keys, and expired ten days ago.
  renew(Role::kServer, "alpha", absl::Now() - absl::Hours(24 * 20));
  renew(Role::kWorker, "w", absl::Now() - absl::Hours(24 * 20));
  // Each end has looked, and three times more.
  const absl::Time give_up = absl::Now() + kPatience;
  absl::Time both_know = absl::InfiniteFuture();
  while (absl::Now() < std::min(give_up, both_know + absl::Seconds(4))) {
    const absl::Status s = call();
    INFO(s);
    REQUIRE(s.ok());
    if (both_know == absl::InfiniteFuture() && !server->source()->problem().ok() &&
        !worker->source()->problem().ok()) {
      both_know = absl::Now();
    }
  }
  CHECK(both_know < absl::InfiniteFuture());

  // Good ones are.
  const std::string before = server->source()->Current()->certificate.facts.serial;
  renew(Role::kServer, "alpha", absl::Now());
  renew(Role::kWorker, "w", absl::Now());
  while (absl::Now() < give_up &&
         !(server->source()->problem().ok() && worker->source()->problem().ok())) {
    REQUIRE(call().ok());
  }
  CHECK(server->source()->Current()->certificate.facts.serial != before);
  CHECK(call().ok());
}

TEST_CASE("who was renewed shows its new certificate to a server that keeps its own", "[tls]") {
  const Certs certs;
  certs.Issue(Role::kServer, "alpha", absl::Now(), 10);
  certs.Issue(Role::kWorker, "w", absl::Now(), 1);
  ManualClock clock(absl::Now());
  const auto server = Open(certs, Role::kServer, "alpha", &clock);
  const auto worker = Open(certs, Role::kWorker, "w", &clock);
  Counting handler;
  CalledServer called(server, worker, &handler);
  const auto call = [&] { return called.Pull(kPatience); };
  REQUIRE(call().ok());
  REQUIRE(
      RenewIdentity(certs.folder(), {.role = Role::kWorker, .name = "w", .days = 5}, absl::Now())
          .ok());
  clock.Advance(absl::Hours(24) + absl::Minutes(1));
  const absl::Status next = call();
  INFO(next);
  CHECK(next.ok());
}

TEST_CASE("a node that was renewed is heard by a scheduler that keeps its certificate", "[tls]") {
  const Certs certs;
  certs.Issue(Role::kScheduler, "s", absl::Now(), 10);
  certs.Issue(Role::kWorker, "w", absl::Now(), 1);
  ManualClock clock(absl::Now());
  const auto control = Open(certs, Role::kScheduler, "s", &clock);
  const auto worker = Open(certs, Role::kWorker, "w", &clock);
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
  REQUIRE(
      RenewIdentity(certs.folder(), {.role = Role::kWorker, .name = "w", .days = 5}, absl::Now())
          .ok());
  clock.Advance(absl::Hours(24) + absl::Minutes(1));
  const absl::Status next = client->Sync(report, kPatience).status();
  INFO(next);
  CHECK(next.ok());
  (*started)->Stop();
}

}  // namespace
}  // namespace strata::testing

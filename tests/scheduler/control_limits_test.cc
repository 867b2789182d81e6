// One caller of the scheduler's port, whatever he does, leaves threads for the others.
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "proto/runtime/credentials/identity.h"
#include "proto/runtime/transport/grpc_scheduler_client.h"
#include "proto/runtime/transport/process_tls.h"
#include "proto/runtime/transport/scheduler_client.h"
#include "proto/strata/control.pb.h"
#include "scheduler/scheduler.h"
#include "scheduler/scheduler_service.h"
#include "scheduler/store/memory_metadata_store.h"
#include "tests/proto/runtime/transport/raw_calls.h"
#include "tests/proto/runtime/transport/test_certs.h"
#include "tests/proto/runtime/transport/unread_calls.h"

namespace strata::scheduler {
namespace {

using strata::testing::CallRaw;
using strata::testing::Certs;
using strata::testing::UnreadCalls;

// Before gRPC looks, and before there are threads: as a main program does it.
[[maybe_unused]] const bool kAllowed = (AllowTls13Alone(), true);

constexpr absl::Duration kPatience = absl::Seconds(60);
constexpr int kThreads = 32;
constexpr uint32_t kCallsInFlight = 8;

class Port {
 public:
  Port() {
    const auto tls = Open(certs.Issue(Role::kScheduler, "s"));
    auto started = Scheduler::Start({.store = MakeMemoryMetadataStore(),
                                     .tick_interval = absl::ZeroDuration(),
                                     .credentials = tls->source()});
    REQUIRE(started.ok());
    scheduler = *std::move(started);
    auto at = SchedulerService::Start({.scheduler = scheduler.get(),
                                       .tls = tls,
                                       .owners = scheduler.get(),
                                       .max_threads = kThreads,
                                       .caller_limits = {.calls_in_flight = kCallsInFlight}});
    REQUIRE(at.ok());
    service = *std::move(at);
    node = MakeGrpcSchedulerClient(service->address(), Open(certs.Issue(Role::kWorker, "w")));
  }
  ~Port() { scheduler->Stop(); }

  static std::shared_ptr<ProcessTls> Open(const std::string& folder) {
    auto tls = ProcessTls::Open({.folder = folder});
    INFO(tls.status());
    REQUIRE(tls.ok());
    return *std::move(tls);
  }
  absl::Status Sync() {
    NodeReport report;
    report.set_name("w");
    report.set_role(WORKER);
    report.set_incarnation(1);
    return node->Sync(report, kPatience).status();
  }

  const Certs certs;
  std::unique_ptr<Scheduler> scheduler;
  std::unique_ptr<SchedulerService> service;
  std::unique_ptr<SchedulerClient> node;
};

void CheckNodesAreHeard(Port& port) {
  for (int i = 0; i < 20; ++i) {
    const absl::Status s = port.Sync();
    INFO(s);
    REQUIRE(s.ok());
  }
}

TEST_CASE("calls of one operator that wait take not all threads from nodes", "[limits]") {
  Port port;
  const auto me = Port::Open(port.certs.Issue(Role::kOperator, "me"));
  const auto other = Port::Open(port.certs.Issue(Role::kOperator, "other"));
  CheckNodesAreHeard(port);
  const uint64_t last = port.scheduler->GetEvents({}, kPatience)->last_sequence();
  GetEventsRequest wait;
  wait.set_after_sequence(last + 1000);
  wait.set_wait_ms(10'000);
  UnreadCalls waiting(me, port.service->address(), Role::kScheduler);
  for (int i = 0; i < 2 * kThreads; ++i) {
    waiting.Call("/strata.Scheduler/GetEvents", wait.SerializeAsString());
  }
  CheckNodesAreHeard(port);
  const strata::testing::RawCall list = {.address = port.service->address(),
                                         .listens = Role::kScheduler,
                                         .path = "/strata.Scheduler/ListJobs"};
  const absl::Status s = CallRaw(me, list);
  INFO(s);
  CHECK(absl::IsResourceExhausted(s));
  CHECK(absl::StrContains(s.message(), "operator/me is at its limit of 8 calls in flight"));
  CHECK(CallRaw(other, list).ok());
  port.scheduler->Stop();
}

TEST_CASE("replies that one operator does not read take not all threads from nodes", "[limits]") {
  Port port;
  const auto me = Port::Open(port.certs.Issue(Role::kOperator, "me"));
  CheckNodesAreHeard(port);
  UnreadCalls unread(me, port.service->address(), Role::kScheduler);
  for (int i = 0; i < 2 * kThreads; ++i) unread.Call("/strata.Scheduler/GetCluster", "");
  CheckNodesAreHeard(port);
}

}  // namespace
}  // namespace strata::scheduler

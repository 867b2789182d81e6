// Every call of a scheduler inside one process, by every role.
#include "proto/runtime/transport/scheduler_caller.h"

#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "proto/runtime/credentials/identity.h"
#include "proto/runtime/credentials/rpc_policy.h"
#include "proto/strata/control.pb.h"
#include "scheduler/scheduler.h"
#include "scheduler/store/memory_metadata_store.h"

namespace strata::scheduler {
namespace {

constexpr absl::Duration kCall = absl::Seconds(5);
constexpr char kName[] = "n";

NodeReport ReportOf(const std::string& name, NodeRole role) {
  NodeReport report;
  report.set_name(name);
  report.set_role(role);
  report.set_incarnation(1);
  return report;
}

struct Control {
  Rpc rpc;
  std::function<absl::Status(SchedulerClient&, Role)> call;
};

std::vector<Control> All() {
  return {
      {Rpc::kSync,
       [](SchedulerClient& s, Role role) {
         return s.Sync(ReportOf(kName, role == Role::kServer ? SERVER : WORKER), kCall).status();
       }},
      {Rpc::kSubmit, [](SchedulerClient& s, Role) { return s.Submit({}, kCall).status(); }},
      {Rpc::kGetJob, [](SchedulerClient& s, Role) { return s.GetJob({}, kCall).status(); }},
      {Rpc::kListJobs, [](SchedulerClient& s, Role) { return s.ListJobs(kCall).status(); }},
      {Rpc::kCancelJob, [](SchedulerClient& s, Role) { return s.CancelJob({}, kCall).status(); }},
      {Rpc::kCreateCheckpoint,
       [](SchedulerClient& s, Role) { return s.CreateCheckpoint({}, kCall).status(); }},
      {Rpc::kGetCluster, [](SchedulerClient& s, Role) { return s.GetCluster(kCall).status(); }},
      {Rpc::kGetShards, [](SchedulerClient& s, Role) { return s.GetShards({}, kCall).status(); }},
      {Rpc::kGetEvents, [](SchedulerClient& s, Role) { return s.GetEvents({}, kCall).status(); }},
      {Rpc::kSettleQuarantine,
       [](SchedulerClient& s, Role) { return s.SettleQuarantine({}, kCall).status(); }},
  };
}

// A scheduler of its own for each role: one name is a server's or a worker's.
std::unique_ptr<Scheduler> Started() {
  auto started =
      Scheduler::Start({.store = MakeMemoryMetadataStore(), .tick_interval = absl::ZeroDuration()});
  REQUIRE(started.ok());
  return *std::move(started);
}

TEST_CASE("inside one process a role may do what it may do at a port, and no more", "[callers]") {
  for (const Role role : kRoles) {
    const auto scheduler = Started();
    const auto as = CallSchedulerAs({.name = kName, .role = role}, scheduler.get());
    for (const Control& control : All()) {
      const absl::Status s = control.call(*as, role);
      INFO(RoleName(role) << " " << RuleOf(control.rpc).method << ": " << s);
      CHECK(absl::IsPermissionDenied(s) == !RuleOf(control.rpc).Allows(role));
    }
    scheduler->Stop();
  }
}

TEST_CASE("each call of the scheduler's service is walked", "[callers]") {
  size_t control = 0;
  for (const RpcRule& rule : kRpcRules) control += std::string(rule.service) == "strata.Scheduler";
  CHECK(All().size() == control);
}

TEST_CASE("a node inside one process reports as itself alone", "[callers]") {
  const auto scheduler = Started();
  const auto as = CallSchedulerAs({.name = kName, .role = Role::kWorker}, scheduler.get());
  CHECK(as->Sync(ReportOf(kName, WORKER), kCall).ok());
  for (const NodeReport& other : {ReportOf("m", WORKER), ReportOf(kName, SERVER)}) {
    const absl::Status s = as->Sync(other, kCall).status();
    INFO(s);
    CHECK(absl::IsPermissionDenied(s));
    CHECK(absl::StrContains(s.message(), "worker/n reports as "));
  }
  scheduler->Stop();
}

}  // namespace
}  // namespace strata::scheduler

// Every call of both services at real ports, by everybody who may not make it.
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/core/uid.h"
#include "proto/runtime/base/manual_clock.h"
#include "proto/runtime/credentials/identity.h"
#include "proto/runtime/credentials/identity_files.h"
#include "proto/runtime/credentials/revocations.h"
#include "proto/runtime/credentials/rpc_policy.h"
#include "proto/runtime/credentials/session_credential.h"
#include "proto/runtime/transport/grpc_transport.h"
#include "proto/runtime/transport/process_tls.h"
#include "proto/runtime/transport/transport.h"
#include "proto/strata/control.pb.h"
#include "proto/wire/buffer.h"
#include "proto/wire/message_codec.h"
#include "scheduler/scheduler.h"
#include "scheduler/scheduler_service.h"
#include "scheduler/store/memory_metadata_store.h"
#include "tests/proto/runtime/transport/raw_calls.h"
#include "tests/proto/runtime/transport/test_certs.h"
#include "tests/server/job/bench.h"
#include "tests/server/job/copies.h"

namespace strata::server {
namespace {

using strata::testing::CallRaw;
using strata::testing::Certs;
using strata::testing::kOtherTlsCluster;
using strata::testing::kTlsCluster;
using strata::testing::RawCall;

// Before gRPC looks, and before there are threads: as a main program does it.
[[maybe_unused]] const bool kAllowed = (AllowTls13Alone(), true);

std::string Text(const Buffer& buffer) {
  return {reinterpret_cast<const char*>(buffer.data()), buffer.size()};
}

bool IsData(Rpc rpc) { return std::string(RuleOf(rpc).service) == "strata.DataPlane"; }

// A method at one of the ports.
struct Served {
  Rpc rpc;
  Role at;
};
// All of them; health is on both.
std::vector<Served> AllServed() {
  std::vector<Served> served;
  for (const RpcRule& rule : kRpcRules) {
    const bool health = std::string(rule.service) == "grpc.health.v1.Health";
    if (health || IsData(rule.rpc)) served.push_back({rule.rpc, Role::kServer});
    if (health || !IsData(rule.rpc)) served.push_back({rule.rpc, Role::kScheduler});
  }
  return served;
}

// A server that holds a job and a scheduler, each at a port of its own that asks who calls.
class Ports {
 public:
  Ports() {
    bench.Start();
    bench.service_.SetSessionKeys({signer->Public()});
    server = OpenTls(certs.Issue(Role::kServer, "alpha"), &clock);
    transport = MakeGrpcTransport({.tls = server});
    auto data = transport->Listen("127.0.0.1:0", &bench.service_);
    REQUIRE(data.ok());
    listener = *std::move(data);
    control = OpenTls(certs.Issue(Role::kScheduler, "s"), &clock);
    auto started = scheduler::Scheduler::Start({.store = scheduler::MakeMemoryMetadataStore(),
                                                .tick_interval = absl::ZeroDuration(),
                                                .credentials = control->source()});
    REQUIRE(started.ok());
    scheduler_ = *std::move(started);
    auto at = scheduler::SchedulerService::Start(
        {.scheduler = scheduler_.get(), .tls = control, .owners = scheduler_.get()});
    REQUIRE(at.ok());
    service = *std::move(at);
  }
  ~Ports() {
    scheduler_->Stop();
    service.reset();
    listener.reset();
    bench.Stop();
  }

  static std::shared_ptr<ProcessTls> OpenTls(const std::string& folder,
                                             Clock* clock = Clock::Real()) {
    auto tls = ProcessTls::Open({.folder = folder, .clock = clock});
    INFO(tls.status());
    REQUIRE(tls.ok());
    return *std::move(tls);
  }
  std::shared_ptr<ProcessTls> As(Role role, const std::string& name) {
    return OpenTls(certs.Issue(role, name));
  }

  RawCall To(const Served& served, std::string body = "", std::string session = "") const {
    const RpcRule& rule = RuleOf(served.rpc);
    return {.address = served.at == Role::kServer ? listener->address() : service->address(),
            .listens = served.at,
            .path = absl::StrCat("/", rule.service, "/", rule.method),
            .body = std::move(body),
            .session = std::move(session),
            .streams = served.rpc == Rpc::kWatchHealth};
  }
  RawCall To(Rpc rpc, std::string body = "", std::string session = "") const {
    return To({rpc, IsData(rpc) ? Role::kServer : Role::kScheduler}, std::move(body),
              std::move(session));
  }
  // What the port answers to whom it lets make the call, as a node under its own name.
  std::string Body(Rpc rpc, Role role, const std::string& name) const {
    if (rpc != Rpc::kSync) return "";
    NodeReport report;
    report.set_name(name);
    report.set_role(role == Role::kServer ? SERVER : WORKER);
    report.set_incarnation(1);
    return report.SerializeAsString();
  }
  // A whole message of the job that the server holds.
  std::string DataBody(Rpc rpc) {
    const wire::Header header = bench.header();
    const ShardId shard(0);
    const std::vector<Key> keys = {Key(1)};
    switch (rpc) {
      case Rpc::kOpenSession:
        return Text(wire::EncodeOpenSessionRequest(wire::OpenSessionFor(header, bench.identity())));
      case Rpc::kPush:
        return Text(bench.PushMessage(1, 1, {{0, 1}}, {.step = Step(1)}));
      case Rpc::kMark:
        return Text(wire::EncodeMarkRequest({.header = header, .sequence = Sequence(99)}));
      case Rpc::kPrefetch:
        return Text(*wire::EncodePrefetchRequest(header, Step(1), {&shard, 1}, {}));
      default:
        return Text(
            *wire::EncodePullRequest(header, Step(1), 0, {&shard, 1}, {}, {.want_ticket = true}));
    }
  }
  SessionCredential Session() const {
    return {.cluster = bench.identity().cluster,
            .job = bench.identity().job,
            .generation = bench.header().generation,
            .session = bench.header().session,
            .worker = "w",
            .lanes = {0, 1},
            .expires = absl::FromUnixSeconds(absl::ToUnixSeconds(absl::Now())) + absl::Hours(1)};
  }

  const Certs certs;
  ManualClock clock{absl::Now()};
  JobBench bench{2};
  absl::StatusOr<SessionSigner> signer = SessionSigner::New();
  std::shared_ptr<ProcessTls> server, control;
  std::unique_ptr<DataTransport> transport;
  std::unique_ptr<DataListener> listener;
  std::unique_ptr<scheduler::Scheduler> scheduler_;
  std::unique_ptr<scheduler::SchedulerService> service;
};

TEST_CASE("each role may make its calls, and no others", "[policy]") {
  Ports ports;
  for (const Role role : kRoles) {
    const std::string name = absl::StrCat("a-", RoleName(role));
    const auto caller = ports.As(role, name);
    for (const Served& served : AllServed()) {
      const Rpc rpc = served.rpc;
      const absl::Status s = CallRaw(caller, ports.To(served, ports.Body(rpc, role, name)));
      INFO(RoleName(role) << " " << RuleOf(rpc).method << ": " << s);
      const bool refused = absl::IsPermissionDenied(s) || absl::IsUnauthenticated(s);
      CHECK(refused == !RuleOf(rpc).Allows(role));
      CHECK_FALSE(absl::IsUnavailable(s));
      if (!refused) continue;
      CHECK(absl::IsPermissionDenied(s));
      CHECK(absl::StrContains(s.message(), absl::StrCat("CN=", name, ", expires 2")));
    }
  }
}

TEST_CASE("who has no certificate of the cluster's CA makes no call", "[policy]") {
  Ports ports;
  const Certs other(kOtherTlsCluster), same_name(kTlsCluster);
  for (const Certs* strange : {&other, &same_name}) {
    const auto stranger = Ports::OpenTls(strange->Issue(Role::kWorker, "w"));
    for (const Served& served : AllServed()) {
      INFO(RuleOf(served.rpc).method);
      CHECK(absl::IsUnavailable(CallRaw(stranger, ports.To(served))));
    }
  }
  for (const Served& served : AllServed()) {
    CHECK(absl::IsUnavailable(CallRaw(nullptr, ports.To(served))));
  }
}

// Of some role that may make the call.
Role SomeRole(Rpc rpc) { return RuleOf(rpc).AllowedRoles().front(); }

TEST_CASE("a certificate that expires or is revoked ends what its owner may do, at the next call",
          "[policy]") {
  Ports ports;
  Revocations revoked;
  std::vector<std::pair<Served, std::shared_ptr<ProcessTls>>> callers;
  for (const Served& served : AllServed()) {
    const Role role = SomeRole(served.rpc);
    const std::string name =
        absl::StrCat("of-", RuleOf(served.rpc).method, "-at-", RoleName(served.at));
    callers.emplace_back(served, ports.As(role, name));
    revoked.Add(callers.back().second->source()->Current()->certificate.facts.serial,
                {Describe(callers.back().second->self()), absl::Now()});
  }
  const auto all = [&](const std::string& says, bool refused) {
    for (const auto& [served, caller] : callers) {
      const Rpc rpc = served.rpc;
      const Identity& self = caller->self();
      const absl::Status s =
          CallRaw(caller, ports.To(served, ports.Body(rpc, self.role, self.name)));
      INFO(RuleOf(rpc).method << ": " << s);
      // What a node's UNAUTHENTICATED means is another thing (control.proto).
      const bool ended =
          rpc == Rpc::kSync ? absl::IsPermissionDenied(s) : absl::IsUnauthenticated(s);
      CHECK(ended == refused);
      if (refused) CHECK(absl::StrContains(s.message(), says));
      if (refused) CHECK(absl::StrContains(s.message(), absl::StrCat("CN=", self.name)));
    }
  };
  all("", false);
  ports.server->source()->SetRevoked(revoked);
  ports.control->source()->SetRevoked(revoked);
  all("it was revoked", true);
  ports.server->source()->SetRevoked({});
  ports.control->source()->SetRevoked({});
  all("", false);
  ports.clock.Advance(absl::Hours(24) * 11);
  all("it has expired", true);
}

TEST_CASE("a node reports under its own name and role alone", "[policy]") {
  Ports ports;
  const auto worker = ports.As(Role::kWorker, "w");
  const std::vector<std::pair<Role, std::string>> others = {
      {Role::kWorker, "v"}, {Role::kServer, "w"}, {Role::kWorker, ""}};
  for (const auto& [role, name] : others) {
    const absl::Status s =
        CallRaw(worker, ports.To(Rpc::kSync, ports.Body(Rpc::kSync, role, name)));
    INFO(s);
    CHECK(absl::IsPermissionDenied(s));
    CHECK(absl::StrContains(s.message(), "worker/w reports as"));
  }
  CHECK(CallRaw(worker, ports.To(Rpc::kSync, ports.Body(Rpc::kSync, Role::kWorker, "w"))).ok());
}

TEST_CASE("data calls need the session credential of their job", "[policy]") {
  Ports ports;
  const auto worker = ports.As(Role::kWorker, "w");
  SessionCredential expired = ports.Session(), other_job = ports.Session(),
                    other_session = ports.Session(), other_generation = ports.Session();
  expired.expires -= absl::Hours(3);
  other_job.job = {9, 9};
  other_session.session = SessionId(10);
  other_generation.generation = Generation(2);
  const std::string strange = *SessionSigner::New()->Sign(ports.Session());
  for (const Rpc rpc : {Rpc::kOpenSession, Rpc::kPull, Rpc::kPush, Rpc::kMark, Rpc::kPrefetch}) {
    const std::string body = ports.DataBody(rpc);
    const auto with = [&](const std::string& credential) {
      const absl::Status s = CallRaw(worker, ports.To(rpc, body, credential));
      UNSCOPED_INFO(RuleOf(rpc).method << ": " << s);
      return s;
    };
    CHECK(absl::IsUnauthenticated(with("")));
    CHECK(absl::IsUnauthenticated(with(strange)));
    CHECK(absl::IsUnauthenticated(with(*ports.signer->Sign(expired))));
    CHECK(absl::IsPermissionDenied(with(*ports.signer->Sign(other_job))));
    CHECK(absl::IsPermissionDenied(with(*ports.signer->Sign(other_session))));
    const absl::Status generation = with(*ports.signer->Sign(other_generation));
    CHECK(absl::IsPermissionDenied(generation));
    CHECK(absl::StrContains(generation.message(), "is of generation 2"));
  }
  CHECK(CallRaw(worker, ports.To(Rpc::kOpenSession, ports.DataBody(Rpc::kOpenSession),
                                 *ports.signer->Sign(ports.Session())))
            .ok());
  const auto reader = ports.As(Role::kReader, "r");
  const absl::Status ticket = CallRaw(reader, ports.To(Rpc::kPull, ports.DataBody(Rpc::kPull)));
  CHECK(absl::IsPermissionDenied(ticket));
  CHECK(absl::StrContains(ticket.message(), "asks for a ticket"));
}

TEST_CASE("a push is of lanes that the session credential names", "[policy]") {
  Ports ports;
  const auto worker = ports.As(Role::kWorker, "w");
  SessionCredential other_lane = ports.Session();
  other_lane.lanes = {1};
  const std::string credential = *ports.signer->Sign(other_lane);
  REQUIRE(
      CallRaw(worker, ports.To(Rpc::kOpenSession, ports.DataBody(Rpc::kOpenSession), credential))
          .ok());
  const absl::Status s =
      CallRaw(worker, ports.To(Rpc::kPush, ports.DataBody(Rpc::kPush), credential));
  INFO(s);
  CHECK(absl::IsFailedPrecondition(s));
  CHECK(absl::StrContains(s.message(), "lane 0 is not one of the session's"));
}

TEST_CASE("only the server before a copy forwards to it, whatever another one knows", "[policy]") {
  const Certs certs;
  Copies copies(2);
  copies.Open(0);
  copies.Open(1);
  copies.TellAll(1, {0, 1});
  copies.Run();
  const auto transport =
      MakeGrpcTransport({.tls = Ports::OpenTls(certs.Issue(Role::kServer, "s1"))});
  const auto listener = transport->Listen("127.0.0.1:0", &copies[1].service_);
  REQUIRE(listener.ok());
  wire::ForwardRequestView question;
  question.fields.header = {JobId(1), {}, Generation(1), {}, 1};
  question.fields.cluster_id = copies[1].identity().cluster.text();
  question.fields.job_uid = copies[1].identity().job.text();
  question.fields.chain_epoch = 1;
  question.fields.from_log_id = "log-0";
  question.fields.log_id = "log-1";
  const std::string body = Text(*wire::EncodeForwardRequest(question));
  const auto ask = [&](const std::string& server) {
    return CallRaw(Ports::OpenTls(certs.Issue(Role::kServer, server)),
                   {.address = (*listener)->address(),
                    .listens = Role::kServer,
                    .path = "/strata.DataPlane/Forward",
                    .body = body});
  };
  CHECK(ask("s0").ok());
  const absl::Status stranger = ask("s2");
  INFO(stranger);
  CHECK(absl::IsFailedPrecondition(stranger));
  CHECK(absl::StrContains(stranger.message(), "is not the copy before this one"));
}

}  // namespace
}  // namespace strata::server

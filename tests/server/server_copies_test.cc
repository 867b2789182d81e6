// Servers whose shards have copies on each other, as a scheduler that a test speaks for tells them.
#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/core/ids.h"
#include "proto/strata/control.pb.h"
#include "proto/wire/message_codec.h"
#include "server/job/job_folder.h"
#include "server/server.h"
#include "tests/server/one_shard_job.h"
#include "tests/server/scripted_cluster.h"

namespace strata::server {
namespace {

wire::Header HeaderTo(uint32_t server) {
  return wire::Header{JobId(1), SessionId(5), Generation(1), MapEpoch(3)}.To(server);
}

// Two servers, each with a scheduler of its own that says what the test wants.
struct TwoServers {
  TempFolder folder;
  std::unique_ptr<DataTransport> transport = MakeInProcTransport();
  ScriptedScheduler schedulers[2];
  std::unique_ptr<Server> servers[2];
  std::string logs[2] = {"log-a", "log-b"};

  static std::string NameOf(size_t i) { return i == 0 ? "a" : "b"; }
  void Start(size_t i) {
    ServerOptions o;
    o.name = NameOf(i);
    o.scheduler = &schedulers[i];
    o.transport = transport.get();
    o.listen_address = NameOf(i);
    o.directory = folder.path() + "/" + NameOf(i);
    o.threads = 2;
    auto server = Server::Start(o);
    REQUIRE(server.ok());
    servers[i] = *std::move(server);
  }
  void Fill(size_t i, ChainMember* member) const {
    member->set_server(NameOf(i));
    member->set_data_address(NameOf(i));
    member->set_log_id(logs[i]);
  }
  void Say(size_t i, uint64_t epoch, const std::vector<size_t>& members, int joining = -1,
           uint32_t learners = 0) {
    NodeDirective directive;
    ServerJobDirective* job = AddJob(directive, "logged");
    job->mutable_spec()->mutable_spec()->mutable_training()->set_mode("bsp");
    ChainDirective& chain = *job->mutable_chain();
    chain.set_chain_epoch(epoch);
    for (size_t place = 0; place < members.size(); ++place) {
      Fill(members[place], chain.add_members());
      if (members[place] == i) chain.set_place(static_cast<uint32_t>(place));
    }
    if (joining >= 0) Fill(static_cast<size_t>(joining), chain.mutable_joining());
    if (joining == static_cast<int>(i)) chain.set_place(static_cast<uint32_t>(members.size()));
    chain.set_full(static_cast<uint32_t>(members.size()) - learners);
    chain.set_min_replicas(1);
    schedulers[i].Say(directive);
  }
  CopyReport Await(size_t i, const std::function<bool(const CopyReport&)>& want) {
    const NodeReport report = schedulers[i].Await([&](const NodeReport& r) {
      return HasState(r, ServerJobReport::OPEN) && want(r.server_jobs(0).copy());
    });
    return report.server_jobs(0).copy();
  }
  absl::StatusOr<Buffer> Call(size_t i, DataMethod method, Buffer request) {
    return transport->Connect({NameOf(i), NameOf(i)}, Caller::Nobody())
        ->CallAndWait(method, std::move(request), absl::Seconds(60));
  }
  absl::Status Open(size_t i, uint32_t slot = 0) {
    const auto request = wire::OpenSessionFor(HeaderTo(slot), kIdentity);
    return Call(i, DataMethod::kOpenSession, wire::EncodeOpenSessionRequest(request)).status();
  }
  void Push(size_t i, uint64_t step) {
    const std::vector<ShardId> shards = {ShardId(0)};
    const std::vector<wire::PushContribution> contributions = {{{0, 1}, 1, {}, {}}};
    auto encoder = wire::PushRequestEncoder::Make(shards, contributions);
    REQUIRE(encoder.ok());
    wire::PushFields f;
    f.header = HeaderTo(0);
    f.sequence = Sequence(step);
    f.step = Step(step);
    REQUIRE(Call(i, DataMethod::kPush, encoder->Finish(f)).ok());
  }
  // Waits until the step before is committed.
  wire::PullOutcome Pull(size_t i, uint64_t step) {
    const std::vector<ShardId> shards = {ShardId(0)};
    auto request = wire::EncodePullRequest(HeaderTo(0), Step(step), 30000, shards, {});
    REQUIRE(request.ok());
    const auto reply = Call(i, DataMethod::kPull, *request);
    INFO(reply.status());
    REQUIRE(reply.ok());
    return wire::ParsePullReply(reply->span())->outcome;
  }
};

TEST_CASE("a copy takes the place of a server that is gone, and the server joins again",
          "[server][chain]") {
  TwoServers c;
  c.Start(0);
  c.Start(1);
  c.Say(0, 3, {0, 1});
  c.Say(1, 3, {0, 1});
  c.Await(0, [](const CopyReport& r) { return r.next_has_all(); });
  REQUIRE(c.Open(0).ok());
  CHECK(absl::IsFailedPrecondition(c.Open(1)));
  c.Push(0, 1);
  CHECK(c.Pull(0, 2) == wire::PullOutcome::kServed);
  c.Await(1, [](const CopyReport& r) { return r.ends_size() == 1 && r.ends(0).step() == 1; });
  // The other one has heard from it at least once.
  const auto heard = [&] {
    double asked = 0;
    for (const ServerMetric& m : c.servers[0]->Metrics()) {
      if (m.name == "strata_server_forward_requests_total") asked += m.value;
      if (m.name == "strata_server_forward_errors_total") asked -= m.value;
    }
    return asked >= 2;
  };
  while (!heard()) c.schedulers[1].AwaitCalls(1);
  c.servers[0].reset();
  const NodeReport gone = c.schedulers[1].Await([](const NodeReport& r) {
    return r.peers_size() == 1 && r.peers(0).kind() == PeerTrouble::CLOSED;
  });
  CHECK(gone.peers(0).name() == "a");
  CHECK(gone.peers(0).incarnation() != 0);

  c.Say(1, 4, {1});
  c.Await(1, [](const CopyReport& r) { return r.chain_epoch() == 4 && r.place() == 0; });
  REQUIRE(c.Open(1).ok());
  CHECK(c.Pull(1, 2) == wire::PullOutcome::kServed);
  c.Push(1, 1);  // sent again by a worker that saw no commit
  c.Push(1, 2);
  CHECK(c.Pull(1, 3) == wire::PullOutcome::kServed);

  c.logs[0] = "log-later";
  c.Say(0, 5, {1}, 0);
  c.Say(1, 5, {1}, 0);
  c.Start(0);
  c.Await(0, [](const CopyReport& r) { return r.ends_size() == 1 && r.ends(0).step() == 2; });
  const std::string folder = c.folder.path() + "/a";
  CHECK(std::filesystem::exists(GenerationFolder(folder, kIdentity, Generation(1), 0) + "/OPEN"));
  c.Say(0, 6, {1, 0}, -1, 1);
  c.Say(1, 6, {1, 0}, -1, 1);
  c.Await(1, [](const CopyReport& r) { return r.chain_epoch() == 6 && r.next_has_all(); });
  c.Push(1, 3);
  CHECK(c.Pull(1, 4) == wire::PullOutcome::kServed);
  c.Await(0, [](const CopyReport& r) { return r.ends(0).step() == 3; });

  NodeDirective close;
  AddJob(close, "logged")->set_close(true);
  c.schedulers[0].Say(close);
  c.schedulers[0].Await([](const NodeReport& r) { return r.server_jobs_size() == 0; });
  CHECK_FALSE(std::filesystem::exists(JobFolder(folder, kIdentity)));
}

TEST_CASE("a copy whose log was removed fails, and says nothing of what others have",
          "[server][chain]") {
  TwoServers c;
  c.Start(0);
  c.Start(1);
  c.Say(0, 3, {0, 1});
  c.Say(1, 3, {0, 1});
  c.Await(0, [](const CopyReport& r) { return r.next_has_all(); });
  REQUIRE(c.Open(0).ok());
  c.Push(0, 1);
  CHECK(c.Pull(0, 2) == wire::PullOutcome::kServed);
  std::filesystem::remove_all(c.folder.path() + "/b");
  c.Push(0, 2);
  const NodeReport report = c.schedulers[1].Await(
      [](const NodeReport& r) { return HasState(r, ServerJobReport::FAILED); });
  const std::string& why = report.server_jobs(0).message();
  INFO(why);
  CHECK(why.find("was removed while it was in use") != std::string::npos);
  CHECK(why.find("; leave this folder alone while the job runs, or set spec.storage.directory to "
                 "one that nobody cleans up") != std::string::npos);
  CHECK(why.find("is lost") == std::string::npos);
  CHECK(why.find("submit the job") == std::string::npos);
}

TEST_CASE("a server has copies of several of a job's servers; one that is not named any more goes",
          "[server][chain]") {
  TwoServers c;
  c.Start(0);
  NodeDirective directive;
  for (const uint32_t slot : {0u, 1u}) {
    ServerJobDirective* job = AddJob(directive, "logged");
    job->mutable_shards(0)->set_last_partition(7);
    ShardAssignment* other = job->add_shards();
    other->set_shard(1);
    other->set_server(1);
    other->set_first_partition(8);
    other->set_last_partition(15);
    job->set_server_index(slot);
    ChainDirective& chain = *job->mutable_chain();
    chain.set_chain_epoch(3);
    c.Fill(slot, chain.add_members());
    chain.set_full(1);
  }
  c.schedulers[0].Say(directive);
  c.schedulers[0].Await([](const NodeReport& r) {
    return r.server_jobs_size() == 2 && r.server_jobs(0).state() == ServerJobReport::OPEN &&
           r.server_jobs(1).state() == ServerJobReport::OPEN &&
           r.server_jobs(1).copy().chain_epoch() == 3;
  });
  CHECK(c.Open(0, 0).ok());
  CHECK(c.Open(0, 1).ok());
  CHECK(absl::IsNotFound(c.Open(0, 2)));
  const std::string folder = c.folder.path() + "/a";
  CHECK(std::filesystem::exists(ShardsFolder(folder, kIdentity, 0)));
  directive.mutable_server_jobs()->DeleteSubrange(0, 1);
  c.schedulers[0].Say(directive);
  c.schedulers[0].Await([](const NodeReport& r) { return r.server_jobs_size() == 1; });
  CHECK(absl::IsNotFound(c.Open(0, 0)));
  CHECK(c.Open(0, 1).ok());
  while (std::filesystem::exists(ShardsFolder(folder, kIdentity, 0))) c.schedulers[0].AwaitCalls(1);
  CHECK(std::filesystem::exists(ShardsFolder(folder, kIdentity, 1)));
}

}  // namespace
}  // namespace strata::server

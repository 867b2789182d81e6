#include "server/server.h"

#include <sys/resource.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/core/uid.h"
#include "proto/runtime/base/manual_timer.h"
#include "proto/runtime/files/node_cluster.h"
#include "proto/strata/control.pb.h"
#include "proto/wire/message_codec.h"
#include "server/job/job_folder.h"
#include "tests/server/one_shard_job.h"
#include "tests/server/scripted_cluster.h"

namespace strata::server {
namespace {

TEST_CASE("registers, opens a job, serves it, survives fencing, closes it", "[server]") {
  ScriptedCluster c;
  auto server = Server::Start(c.Options());
  REQUIRE(server.ok());
  const std::string address = (*server)->address();
  REQUIRE(absl::IsNotFound(OpenSession(*c.transport, address)));
  NodeDirective directive;
  AddJob(directive, "logged");
  c.scheduler.Say(directive);
  const NodeReport open =
      c.scheduler.Await([](const NodeReport& r) { return HasState(r, ServerJobReport::OPEN); });
  REQUIRE(open.role() == NodeRole::SERVER);
  REQUIRE(open.data_address() == address);
  REQUIRE(OpenSession(*c.transport, address).ok());
  REQUIRE(std::filesystem::exists(
      GenerationFolder(c.folder.path() + "/s", kIdentity, Generation(1)) + "/OPEN"));

  c.scheduler.Say({});
  c.scheduler.Fence();
  c.scheduler.Await([&](const NodeReport& r) { return r.session() > open.session(); });
  REQUIRE(absl::IsNotFound(OpenSession(*c.transport, address)));  // not before it is named again
  c.scheduler.Say(directive);
  c.scheduler.AwaitCalls(3);
  REQUIRE(OpenSession(*c.transport, address).ok());

  c.scheduler.SetReachable(false);
  c.scheduler.AwaitCalls(2);
  REQUIRE(OpenSession(*c.transport, address).ok());  // a running job needs no scheduler
  c.scheduler.SetReachable(true);

  directive.mutable_server_jobs(0)->set_close(true);
  c.scheduler.Say(directive);
  c.scheduler.Await([](const NodeReport& r) { return r.server_jobs_size() == 0; });
  REQUIRE_FALSE(std::filesystem::exists(JobFolder(c.folder.path() + "/s", kIdentity)));
  REQUIRE(absl::IsNotFound(OpenSession(*c.transport, address)));
}

TEST_CASE("neither a scheduler of another cluster nor one of an earlier term is followed",
          "[server][identity]") {
  ScriptedCluster c;
  auto server = Server::Start(c.Options());
  REQUIRE(server.ok());
  const std::string address = (*server)->address();
  NodeDirective mine;
  mine.set_term(5);
  AddJob(mine, "logged");
  c.scheduler.Say(mine);
  c.scheduler.Await([](const NodeReport& r) { return HasState(r, ServerJobReport::OPEN); });
  const std::string open =
      GenerationFolder(c.folder.path() + "/s", kIdentity, Generation(1)) + "/OPEN";
  NodeDirective wrong;
  wrong.set_term(9);
  wrong.set_cluster_id(ClusterId{8, 8}.text());
  SECTION("another cluster's") {}
  SECTION("an earlier term's") {
    wrong.set_term(4);
    wrong.clear_cluster_id();  // the server's own
  }
  ServerJobDirective* job = AddJob(wrong, "logged");
  job->set_close(true);
  c.scheduler.Say(wrong);
  c.scheduler.AwaitCalls(4);
  CHECK(OpenSession(*c.transport, address).ok());
  CHECK(std::filesystem::exists(open));
  // Nor by the next process of this server.
  server->reset();
  server = Server::Start(c.Options());
  REQUIRE(server.ok());
  c.scheduler.AwaitCalls(4);
  CHECK(std::filesystem::exists(open));
  const NodeReport report =
      c.scheduler.Await([](const NodeReport& r) { return HasState(r, ServerJobReport::KEPT); });
  CHECK(report.cluster_id() == kIdentity.cluster.text());
  CHECK(report.term() == 5);
  mine.mutable_server_jobs(0)->set_was_open(true);
  c.scheduler.Say(mine);
  c.scheduler.Await([](const NodeReport& r) { return HasState(r, ServerJobReport::OPEN); });
}

TEST_CASE("a server that cannot record a later start of its scheduler follows it, and tells that",
          "[server][identity]") {
  ScriptedCluster c;
  auto server = Server::Start(c.Options());
  REQUIRE(server.ok());
  NodeDirective directive;
  directive.set_term(1);
  AddJob(directive, "logged");
  c.scheduler.Say(directive);
  c.scheduler.Await([](const NodeReport& r) { return HasState(r, ServerJobReport::OPEN); });
  // Nothing can be put in its place.
  const std::string record = c.folder.path() + "/s/CLUSTER";
  std::filesystem::remove(record);
  std::filesystem::create_directories(record + "/taken");
  directive.set_term(2);
  directive.mutable_server_jobs(0)->set_generation(2);
  c.scheduler.Say(directive);
  const NodeReport told = c.scheduler.Await([](const NodeReport& r) {
    return HasState(r, ServerJobReport::OPEN) && r.server_jobs(0).generation() == 2;
  });
  CHECK(told.term() == 2);
  REQUIRE(told.server_jobs(0).troubles_size() == 1);
  const Trouble& trouble = told.server_jobs(0).troubles(0);
  CHECK(trouble.reason() == "ClusterNotRecorded");
  CHECK(trouble.since_unix_ms() > 0);
  INFO(trouble.message());
  CHECK(absl::StrContains(trouble.message(), record));
  CHECK(absl::StrContains(trouble.message(), "free space there, or put the folder back"));
  // It ends by itself.
  std::filesystem::remove_all(record);
  c.scheduler.Await([](const NodeReport& r) {
    return r.server_jobs_size() == 1 && r.server_jobs(0).troubles_size() == 0;
  });
  server->reset();
  CHECK(NodeCluster::Open(c.folder.path() + "/s")->term() == 2);
}

TEST_CASE("pauses before the scheduler is tried again grow, and go by the timer", "[server]") {
  ManualTimer timer;
  ScriptedCluster c;
  c.scheduler.SetReachable(false);
  ServerOptions options = c.Options();
  options.timer = &timer;
  options.random = nullptr;
  auto server = Server::Start(options);
  REQUIRE(server.ok());
  const auto pause = [&] {
    timer.AwaitAlarms(1);
    return timer.next() - timer.Now();
  };
  for (const int want : {50, 100, 200, 400, 800, 1333, 1333}) {
    CHECK(pause() == absl::Milliseconds(want));
    timer.AdvanceTo(timer.next());
  }
  pause();
  server->reset();  // waits for no pause
  CHECK(timer.alarms() == 0);
}

TEST_CASE("a pull that waits for a step ends by the server's timer", "[server]") {
  ManualTimer timer;
  ScriptedCluster c;
  NodeDirective directive;
  AddJob(directive, "memory")->mutable_spec()->mutable_spec()->mutable_training()->set_mode("bsp");
  c.scheduler.Say(directive);
  ServerOptions options = c.Options();
  options.timer = &timer;
  auto server = Server::Start(options);
  REQUIRE(server.ok());
  c.scheduler.Await([](const NodeReport& r) { return HasState(r, ServerJobReport::OPEN); });
  const std::vector<ShardId> shards = {ShardId(0)};
  const std::vector<Key> keys = {Key(7)};
  const std::vector<wire::KeyGroup> groups = {{TableId(0), ShardId(0), keys}};
  auto request = wire::EncodePullRequest({JobId(1), SessionId(5), Generation(1), MapEpoch(3)},
                                         Step(2), /*wait_ms=*/30000, shards, groups);
  REQUIRE(request.ok());
  const auto channel = c.transport->Connect({(*server)->address(), "s"}, Caller::Nobody());
  auto answer = std::async(std::launch::async, [&] {
    return channel->CallAndWait(DataMethod::kPull, *request, absl::Minutes(1));
  });
  timer.AwaitAlarms(1);
  CHECK(timer.next() == timer.Now() + absl::Seconds(30));
  timer.Advance(absl::Hours(1));
  const auto reply = answer.get();
  REQUIRE(reply.ok());
  CHECK(wire::ParsePullReply(reply->span())->outcome == wire::PullOutcome::kNotYet);
}

// Niceness of this process's threads by name, from the kernel's list of them.
std::multimap<std::string, int> NicenessByThread() {
  std::multimap<std::string, int> found;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(task.path() / "stat");
    std::string line;
    std::getline(file, line);
    const size_t open = line.find('('), close = line.rfind(')');
    if (close == std::string::npos) continue;  // it ended meanwhile
    std::istringstream rest(line.substr(close + 1));
    std::string field;
    for (int i = 3; i <= 19; ++i) rest >> field;  // proc(5): field 19 is nice
    found.emplace(line.substr(open + 1, close - open - 1), std::stoi(field));
  }
  return found;
}

// A server's threads have the niceness of the thread that starts it, and those of files 5 more.
TEST_CASE("files of images and checkpoints are written behind what serves requests", "[server]") {
  constexpr int kMost = 19;  // Linux knows no more
  const int own = getpriority(PRIO_PROCESS, 0);
  // As with `nice -n 3 strata-server`.
  const int given = std::min(own + GENERATE(0, 3), kMost);
  ScriptedCluster c;
  std::unique_ptr<Server> server;
  std::thread starts([&] {
    setpriority(PRIO_PROCESS, 0, given);  // Linux: of this thread alone
    auto started = Server::Start(c.Options());
    if (started.ok()) server = *std::move(started);
  });
  starts.join();
  REQUIRE(server != nullptr);
  const int behind = std::min(given + 5, kMost);
  std::multimap<std::string, int> threads;
  // A thread sets it when it begins; the server is up before all of them have.
  for (int i = 0; i < 6000; ++i) {  // a minute
    threads = NicenessByThread();
    const auto [first, last] = threads.equal_range("files");
    const bool all = std::all_of(first, last, [&](const auto& t) { return t.second == behind; });
    if (all && std::distance(first, last) == 4) break;
    absl::SleepFor(absl::Milliseconds(10));
  }
  REQUIRE(threads.count("files") == 4);
  REQUIRE(threads.count("shards") == 4);
  for (const auto& [name, nice] : threads) {
    INFO(name << " has " << nice << " of " << own << ", " << given << " and " << behind);
    if (name == "files") {
      REQUIRE(nice == behind);
    } else if (name == "shards") {
      REQUIRE(nice == given);
    } else {
      REQUIRE((nice == given || nice == own));
    }
  }
}

TEST_CASE("after a restart: logged is open again, memory is lost", "[server]") {
  ScriptedCluster c;
  const std::string durability = GENERATE("logged", "memory");
  NodeDirective directive;
  ServerJobDirective* job = AddJob(directive, durability);
  c.scheduler.Say(directive);
  auto server = Server::Start(c.Options());
  REQUIRE(server.ok());
  const NodeReport first =
      c.scheduler.Await([](const NodeReport& r) { return HasState(r, ServerJobReport::OPEN); });
  server->reset();
  job->set_was_open(true);
  c.scheduler.Say(directive);
  server = Server::Start(c.Options());
  REQUIRE(server.ok());
  const auto want = durability == "logged" ? ServerJobReport::OPEN : ServerJobReport::LOST;
  // The first server's last report is still there until the second one's: tell them apart.
  const NodeReport report = c.scheduler.Await([&](const NodeReport& r) {
    return r.incarnation() != first.incarnation() && r.server_jobs_size() == 1 &&
           r.server_jobs(0).state() != ServerJobReport::KEPT &&
           r.server_jobs(0).state() != ServerJobReport::OPENING;
  });
  REQUIRE(HasState(report, want));
}

TEST_CASE("a new generation replaces the old one; what can never open fails", "[server]") {
  ScriptedCluster c;
  NodeDirective directive;
  ServerJobDirective* job = AddJob(directive, "logged");
  c.scheduler.Say(directive);
  auto server = Server::Start(c.Options());
  REQUIRE(server.ok());
  c.scheduler.Await([](const NodeReport& r) { return HasState(r, ServerJobReport::OPEN); });
  job->set_generation(2);
  c.scheduler.Say(directive);
  c.scheduler.Await([](const NodeReport& r) {
    return HasState(r, ServerJobReport::OPEN) && r.server_jobs(0).generation() == 2;
  });
  REQUIRE_FALSE(std::filesystem::exists(c.folder.path() + "/s/job-1/generation-1"));
  REQUIRE(absl::IsFailedPrecondition(OpenSession(*c.transport, (*server)->address())));
  job->set_generation(3);
  job->mutable_spec()->mutable_spec()->mutable_storage()->set_dram_bytes_per_server("100");
  c.scheduler.Say(directive);
  const NodeReport failed =
      c.scheduler.Await([](const NodeReport& r) { return HasState(r, ServerJobReport::FAILED); });
  REQUIRE(failed.server_jobs(0).message().find("dramBytesPerServer") != std::string::npos);
}

TEST_CASE("a folder in use, a name taken and a folder that cannot be are told", "[server]") {
  ScriptedCluster c;
  auto server = Server::Start(c.Options());
  REQUIRE(server.ok());
  REQUIRE(absl::IsFailedPrecondition(Server::Start(c.Options()).status()));
  ServerOptions taken = c.Options();
  taken.directory += "2";
  REQUIRE(absl::IsAlreadyExists(Server::Start(taken).status()));
  ServerOptions bad = c.Options();
  bad.directory = "/dev/null/x";
  REQUIRE(absl::IsPermissionDenied(Server::Start(bad).status()));
}

}  // namespace
}  // namespace strata::server

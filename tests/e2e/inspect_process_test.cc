// nodes, shards, events, top and get-row against real processes, one of which is killed.
#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/core/ids.h"
#include "proto/core/uid.h"
#include "proto/job/tables/model_tables.h"
#include "proto/runtime/transport/grpc_transport.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "scheduler/store/lock_file.h"
#include "tests/e2e/cluster/process_cluster.h"
#include "tests/e2e/cluster/small_job.h"
#include "tools/cluster/embedded/scratch_folder.h"
#include "tools/cluster/live/live_row.h"

namespace strata::testing {
namespace {

using Json = nlohmann::json;

// `strata ... --scheduler ADDRESS --json`, which must succeed.
Json Ask(ProcessCluster& cluster, std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--scheduler", cluster.address(), "--json"});
  const CommandResult result = cluster.Strata(arguments);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  return Json::parse(result.out);
}

std::vector<Json> Events(ProcessCluster& cluster, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "events");
  arguments.insert(arguments.end(), {"--scheduler", cluster.address(), "--json"});
  const CommandResult result = cluster.Strata(arguments);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  std::vector<Json> events;
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) events.push_back(Json::parse(line));
  return events;
}

size_t Count(const std::vector<Json>& events, const std::string& reason) {
  size_t count = 0;
  for (const Json& e : events) count += e["reason"] == reason;
  return count;
}

int Refusal(ProcessCluster& cluster, std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--scheduler", cluster.address()});
  const CommandResult result = cluster.Strata(arguments);
  CHECK(result.out.empty());
  CHECK(!result.err.empty());
  return result.exit_code;
}

// `strata top` of one server and one worker, of which the server has worked since the look before.
struct Top {
  Json server, worker;
};
Top AwaitTop(ProcessCluster& cluster) {
  Top top;
  AwaitThat("the server has pulls and pushes between two looks", [&] {
    const Json all = Ask(cluster, {"top", "--once", "--interval", "0.3"})["processes"];
    REQUIRE(all.size() == 2);
    for (const Json& p : all) (p["role"] == "server" ? top.server : top.worker) = p;
    const auto moves = [&](const char* rate) {
      return top.server[rate].is_number() && top.server[rate] > 0;
    };
    return moves("pulledKeysPerSecond") && moves("pushedKeysPerSecond");
  });
  return top;
}

TEST_CASE("top reads what servers and workers tell Prometheus", "[e2e]") {
  const std::string mode = GENERATE("bsp", "async");
  INFO(mode);
  auto folder = ScratchFolder::Make("strata-test");
  REQUIRE(folder.ok());
  ProcessClusterOptions options;
  options.servers = 1;
  options.workers = 1;
  options.folder = folder->path() + "/c";
  options.server_flags = {"--metrics-listen", "127.0.0.1:0"};
  ProcessCluster cluster(options);
  TrainingJob job = SmallJob(folder->path());
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_data()->clear_eval();
  spec.mutable_training()->set_mode(mode);
  spec.mutable_training()->set_epochs(100000);  // until the cluster ends
  const uint64_t id = cluster.Submit(job);
  cluster.AwaitStep(id, 5);
  const Top top = AwaitTop(cluster);
  INFO(top.server << top.worker);
  CHECK(top.server["trouble"].is_null());
  CHECK(top.server["dramHitRate"] == 1);  // everything is in memory
  CHECK(top.server["ssdHitRate"] == 0);
  CHECK(top.server["queue"] >= 0);
  CHECK(top.server["queue"] <= 1000);
  CHECK(top.server["receivedBytesPerSecond"] > 0);
  CHECK(top.server["sentBytesPerSecond"] > 0);
  CHECK(top.server["memoryBytes"] > 1 << 20);
  CHECK(top.server["cpuCores"] >= 0);
  CHECK(top.worker["trouble"].is_null());
  CHECK(top.worker["examplesPerSecond"] >= 0);
  CHECK(top.worker["pulledKeysPerSecond"].is_null());
  // Only bsp has a clock that is everybody's.
  for (const Json& process : {top.server, top.worker}) {
    if (mode == "bsp") {
      CHECK(process["clock"] > 0);
      CHECK(process["lag"] >= 0);
    } else {
      CHECK(process["clock"].is_null());
      CHECK(process["lag"].is_null());
    }
  }
}

// Who means another job of the same number gets no row of this one.
void CheckReaderIsToldWhose(ProcessCluster& cluster, uint64_t job) {
  JobRef ref;
  ref.set_job(job);
  auto shards = cluster.scheduler().GetShards(ref, absl::Seconds(10));
  REQUIRE(shards.ok());
  auto tables =
      MakeModelTables(shards->spec().spec(), shards->shape().fields(), shards->shape().numeric());
  REQUIRE(tables.ok());
  const auto transport = MakeGrpcTransport();
  const auto read = [&] {
    return ReadLiveRow(*shards, tables->tables[0], Key(1003), *transport, Caller::Nobody(),
                       absl::Seconds(10))
        .status();
  };
  CHECK(read().ok());
  const std::string uid = shards->job_uid(), other = JobUid{0, 9}.text();
  shards->set_job_uid(other);
  const absl::Status refused = read();
  CHECK(absl::IsNotFound(refused));
  CHECK(absl::StrContains(refused.message(), uid));
  CHECK(absl::StrContains(refused.message(), other));
}

TEST_CASE("rows are read of a server that answers for another one's shards as well", "[e2e]") {
  auto folder = ScratchFolder::Make("strata-test");
  REQUIRE(folder.ok());
  ProcessClusterOptions options;
  options.servers = 2;
  options.workers = 1;
  options.folder = folder->path() + "/c";
  ProcessCluster cluster(options);
  TrainingJob job = SmallJob(folder->path());
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_data()->clear_eval();
  spec.mutable_training()->set_epochs(100000);  // until the cluster ends
  spec.mutable_replicas()->set_servers(2);
  spec.mutable_replicas()->set_workers(1);
  spec.mutable_storage()->set_durability("replicated");
  spec.mutable_storage()->set_replicas(2);
  const uint64_t id = cluster.Submit(job);
  cluster.AwaitStep(id, 5);
  cluster.Kill("server-0");
  Json shards;
  AwaitThat("server-1 answers for all shards", [&] {
    shards = Ask(cluster, {"shards", "small"});
    for (const Json& s : shards["shards"]) {
      if (s["server"] != "server-1" || s["clock"].is_null()) return false;
    }
    return true;
  });
  std::set<uint64_t> read;
  for (uint64_t key = 1000; key < 1100 && read.size() < shards["shards"].size(); ++key) {
    const Json row = Ask(cluster, {"get-row", "--job", "small", "--key", absl::StrCat(key)});
    CHECK(row["server"] == "server-1");
    read.insert(row["shard"].get<uint64_t>());
  }
  CHECK(read.size() == shards["shards"].size());
}

TEST_CASE("a running cluster says what it is and does", "[e2e]") {
  auto folder = ScratchFolder::Make("strata-test");
  REQUIRE(folder.ok());
  ProcessClusterOptions options;
  options.workers = 1;
  options.folder = folder->path() + "/c";
  ProcessCluster cluster(options);
  TrainingJob job = SmallJob(folder->path());
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_data()->clear_eval();
  spec.mutable_training()->set_epochs(100000);  // until it is cancelled
  spec.mutable_replicas()->set_servers(2);
  spec.mutable_replicas()->set_workers(1);
  spec.mutable_checkpoint()->set_directory(folder->path() + "/ck");
  spec.mutable_checkpoint()->set_every_steps(1);
  spec.mutable_checkpoint()->set_keep(100000);
  const uint64_t id = cluster.Submit(job);
  cluster.AwaitStep(id, 5);

  const Json nodes = Ask(cluster, {"nodes"})["nodes"];
  REQUIRE(nodes.size() == 3);
  for (const Json& n : nodes) {
    CHECK(n["alive"] == true);
    CHECK(n["jobs"] == Json({id}));
    CHECK(n["memoryBytes"] > 0);
  }

  const Json shards = Ask(cluster, {"shards", "small"});
  REQUIRE(shards["shards"].size() == 8);
  uint64_t next = 0;
  for (const Json& s : shards["shards"]) {
    CHECK(s["firstPartition"] == next);
    next = s["lastPartition"].get<uint64_t>() + 1;
    CHECK(s["clock"] >= 1);
  }
  CHECK(next == 256);

  std::vector<Json> live;
  for (int i = 0; i < 8; ++i) {
    live.push_back(Ask(cluster, {"get-row", "--job", "small", "--key", "1003"}));
  }
  const Json dense = Ask(cluster, {"get-row", "--job", "small", "--table", "dense", "--position",
                                   "504403158265495552"});
  CHECK(dense["tensor"] == "bias");

  CheckReaderIsToldWhose(cluster, id);

  const Json top = Ask(cluster, {"top", "--once", "--interval", "0.3"});
  REQUIRE(top["processes"].size() == 3);
  for (const Json& p : top["processes"]) {
    INFO(p);
    if (p["role"] == "worker") CHECK(p["examplesPerSecond"] >= 0);
    // Servers of this cluster have no metrics address, which is told and no error.
    if (p["role"] == "server") CHECK(p["trouble"].is_string());
  }

  cluster.Kill("server-0");
  cluster.Start("server-0");
  AwaitThat("server-0 holds its shards again",
            [&] { return Count(Events(cluster, {"small"}), "ServerReopened") == 1; });
  REQUIRE(Ask(cluster, {"cancel", "small"})["state"] == "cancelled");
  AwaitThat("what was being written is told of, and the lock is given back", [&] {
    const auto seen = scheduler::LookAtLock(folder->path() + "/ck");
    return seen.ok() && seen->lock && seen->lock->released();
  });
  const std::vector<Json> events = Events(cluster, {});
  CHECK(Count(events, "NodeRegistered") == 4);
  CHECK(Count(events, "NodeFenced") == 1);
  CHECK(Count(events, "Placed") == 1);
  CHECK(Count(events, "ServerReopened") == 1);
  CHECK(Count(events, "Cancelled") == 1);
  for (size_t i = 0; i < events.size(); ++i) {
    CHECK(events[i]["sequence"] == events[0]["sequence"].get<uint64_t>() + i);
  }
  const std::vector<Json> of_job = Events(cluster, {"small"});
  CHECK(Count(of_job, "NodeRegistered") == 0);
  CHECK(of_job.size() < events.size());
  CHECK(Events(cluster, {"--since", "0s"}).empty());

  // A row of a server is that of the checkpoint of the same step, to the bit.
  int compared = 0;
  for (const Json& row : live) {
    char step[32];
    std::snprintf(step, sizeof(step), "/ck/step-%012llu",
                  static_cast<unsigned long long>(row["clock"].get<uint64_t>()));
    const std::string checkpoint = folder->path() + step;
    if (!std::filesystem::exists(checkpoint + "/MANIFEST.json")) continue;  // a cut came too late
    ++compared;
    const Json kept = Ask(cluster, {"get-row", "--checkpoint", checkpoint, "--key", "1003"});
    REQUIRE(kept["segments"].size() == row["segments"].size());
    for (size_t s = 0; s < kept["segments"].size(); ++s) {
      CHECK(kept["segments"][s]["weights"] == row["segments"][s]["weights"]);
    }
  }
  CHECK(compared > 0);
  // The job is over: the same words read its checkpoint.
  CHECK(Ask(cluster, {"get-row", "--job", "small", "--key", "1003"})["exists"] == true);
  CHECK(Ask(cluster, {"shards", "small"})["shards"].empty());

  // The scheduler comes back with its events, and says that it began anew.
  cluster.Kill("scheduler");
  cluster.Start("scheduler");
  cluster.AwaitRegistered();
  const std::vector<Json> again = Events(cluster, {});
  REQUIRE(again.size() > events.size());
  for (size_t i = 0; i < events.size(); ++i) CHECK(again[i] == events[i]);
  CHECK(again[events.size()]["reason"] == "SchedulerStarted");

  CHECK(Refusal(cluster, {"shards", "nobody"}) == 2);
  CHECK(Refusal(cluster, {"events", "nobody"}) == 2);
  CHECK(Refusal(cluster, {"events", "--since", "yesterday"}) == 2);
  CHECK(Refusal(cluster, {"get-row", "--job", "nobody", "--key", "1"}) == 2);
  CHECK(Refusal(cluster, {"get-row", "--job", "small", "--key", "x"}) == 2);
}

}  // namespace
}  // namespace strata::testing

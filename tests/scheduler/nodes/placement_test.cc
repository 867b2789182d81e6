#include "scheduler/nodes/placement.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "proto/strata/control.pb.h"
#include "scheduler/nodes/membership.h"
#include "scheduler/state/state.pb.h"

namespace strata::scheduler {
namespace {

TEST_CASE("every lane has exactly one host, whatever slots are vacant", "[scheduler]") {
  for (uint32_t lanes = 1; lanes <= 12; ++lanes) {
    for (uint32_t slots = 1; slots <= std::min<uint32_t>(lanes, 6); ++slots) {
      const auto home = AssignLanes(lanes, std::vector<bool>(slots, true));
      for (uint32_t mask = 1; mask < (1u << slots); ++mask) {
        std::vector<bool> occupied(slots);
        for (uint32_t i = 0; i < slots; ++i) occupied[i] = (mask >> i) & 1;
        const auto result = AssignLanes(lanes, occupied);
        std::vector<int> hosts(lanes);
        for (uint32_t i = 0; i < slots; ++i) {
          if (!occupied[i]) REQUIRE(result[i].empty());
          for (uint32_t lane : result[i]) ++hosts[lane];
          // Nobody loses what it had.
          for (uint32_t lane : home[i]) {
            if (occupied[i]) REQUIRE(std::count(result[i].begin(), result[i].end(), lane) == 1);
          }
        }
        for (int n : hosts) REQUIRE(n == 1);
      }
      // Contiguous runs, in order.
      uint32_t next = 0;
      for (const auto& run : home) {
        for (uint32_t lane : run) REQUIRE(lane == next++);
      }
    }
  }
  REQUIRE(AssignLanes(4, {false, false}) == std::vector<std::vector<uint32_t>>(2));
}

TEST_CASE("more workers than lanes is an error that names both", "[scheduler]") {
  JobSpec spec;
  spec.mutable_training()->set_lanes(4);
  spec.mutable_storage()->set_partitions(16);
  spec.mutable_replicas()->set_workers(5);
  spec.mutable_replicas()->set_servers(1);
  const absl::Status status = CheckReplicas(spec);
  REQUIRE(absl::IsInvalidArgument(status));
  const std::string text(status.message());
  REQUIRE(text.find("spec.replicas.workers is 5") != std::string::npos);
  REQUIRE(text.find("spec.training.lanes is 4") != std::string::npos);
  spec.mutable_replicas()->set_workers(4);
  REQUIRE(CheckReplicas(spec).ok());
  spec.mutable_replicas()->set_servers(17);
  REQUIRE(absl::IsInvalidArgument(CheckReplicas(spec)));
}

TEST_CASE("servers with the least to do are taken", "[scheduler]") {
  const std::vector<Candidate> live = {{"a", 2}, {"b", 0}, {"c", 1}, {"d", 0}};
  REQUIRE(*ChooseServers(live, 3) == std::vector<std::string>{"b", "c", "d"});
  REQUIRE(absl::IsUnavailable(ChooseServers(live, 5).status()));
}

// A server in a zone, with copies of the job already, and room for so many bytes.
Candidate In(const std::string& zone, const std::string& name, uint32_t copies = 0,
             uint64_t bytes = 0) {
  Candidate c = {.name = name};
  c.zone = zone;
  c.copies = copies;
  c.room.whole.set_dram_bytes(bytes);
  return c;
}

TEST_CASE("copies are on servers of other zones, spread over them", "[scheduler]") {
  using Chains = std::vector<std::vector<std::string>>;
  const std::vector<Candidate> racks = {In("a", "s0"), In("a", "s1"), In("b", "s2"), In("b", "s3")};
  CHECK(*ChooseCopies(racks, {"s0", "s1", "s2", "s3"}, 2, {}) ==
        Chains{{"s0", "s2"}, {"s1", "s3"}, {"s2", "s0"}, {"s3", "s1"}});
  // Those without a copy first.
  CHECK(*ChooseCopies(racks, {"s0"}, 2, {}) == Chains{{"s0", "s2"}});
  CHECK(*ChooseCopies({In("a", "s0"), In("b", "s1"), In("c", "s2")}, {"s0", "s1"}, 2, {}) ==
        Chains{{"s0", "s2"}, {"s1", "s2"}});  // the next by name after the head
  CHECK(*ChooseCopies({In("a", "s0"), In("b", "s1"), In("c", "s2")}, {"s1"}, 3, {}) ==
        Chains{{"s1", "s2", "s0"}});
}

TEST_CASE("fewer zones than copies are an error that names them", "[scheduler]") {
  const absl::Status few =
      ChooseCopies({In("r1", "s0"), In("r1", "s1"), In("s2", "s2")}, {"s0"}, 3, {}).status();
  CHECK(absl::IsFailedPrecondition(few));
  CHECK(few.message() ==
        "waiting for zones: spec.storage.replicas wants 3 copies of each shard in 3 zones, 2 "
        "there: r1 (s0, s1), s2; start a server elsewhere (strata-server --zone; default: each is "
        "one), or lower replicas");
}

TEST_CASE("a server needs room for all copies that it has", "[scheduler]") {
  ServerNeed need;
  need.least.set_dram_bytes(100);
  need.likely.set_dram_bytes(100);
  const std::vector<Candidate> live = {In("a", "s0", 0, 250), In("b", "s1", 0, 250),
                                       In("c", "s2", 0, 150)};
  // s2 has room for one.
  CHECK(*ChooseCopies(live, {"s0", "s1"}, 2, need) ==
        std::vector<std::vector<std::string>>{{"s0", "s2"}, {"s1", "s0"}});
  const absl::Status full =
      ChooseCopies({In("a", "s0", 0, 150), In("b", "s1", 0, 150)}, {"s0", "s1"}, 2, need).status();
  CHECK(absl::IsResourceExhausted(full));
  const std::string text(full.message());
  INFO(text);
  CHECK(text.find("copy 2 of 2") != std::string::npos);
  CHECK(text.find("s1 has 150 B of memory free of 150 B and would have 2 copies") !=
        std::string::npos);
  CHECK(ChooseCopy(live, {"a", "b"}, "s0", need) == "s2");
  CHECK(ChooseCopy({In("b", "s1", 1, 150)}, {"a"}, "s0", need).empty());
}

TEST_CASE("workers of a bsp job have one numerics id", "[scheduler]") {
  const std::vector<Candidate> live = {
      {"a", 0, 1, "x"}, {"b", 0, 1, "y"}, {"c", 1, 1, "x"}, {"d", 0, 1, "y"}};
  REQUIRE(*ChooseWorkers(live, 2, true, "") == std::vector<std::string>{"b", "d"});
  REQUIRE(*ChooseWorkers(live, 2, false, "") == std::vector<std::string>{"a", "b"});
  REQUIRE(*ChooseWorkers(live, 1, true, "y") == std::vector<std::string>{"b"});
  const absl::Status none = ChooseWorkers(live, 1, true, "z").status();
  REQUIRE(absl::IsUnavailable(none));
  REQUIRE(std::string(none.message()).find("z") != std::string::npos);
  // One with another job is not taken.
  REQUIRE(absl::IsUnavailable(ChooseWorkers(live, 2, true, "x").status()));
}

TEST_CASE("a bsp job is refused where only several device classes together are enough",
          "[scheduler]") {
  const std::vector<Candidate> live = {{"a", 0, 1, "x", "cpu"}, {"b", 0, 1, "y", "NVIDIA H200"}};
  const absl::Status mixed = ChooseWorkers(live, 2, true, "").status();
  REQUIRE(absl::IsFailedPrecondition(mixed));
  const std::string text(mixed.message());
  for (const char* part : {"worker a computes on cpu", "worker b on NVIDIA H200",
                           "set spec.worker.device to cpu", "spec.replicas.workers"}) {
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
  }
  REQUIRE(ChooseWorkers(live, 1, true, "").ok());
  // Async modes may mix, and what is not there yet may come.
  REQUIRE(*ChooseWorkers(live, 2, false, "") == std::vector<std::string>{"a", "b"});
  REQUIRE(absl::IsUnavailable(ChooseWorkers(live, 3, true, "").status()));
  REQUIRE(absl::IsUnavailable(ChooseWorkers(live, 2, true, "y").status()));
  // One class, other ids.
  REQUIRE(absl::IsUnavailable(
      ChooseWorkers({{"a", 0, 1, "x", "cpu"}, {"b", 0, 1, "y", "cpu"}}, 2, true, "").status()));
}

TEST_CASE("a node without the GPU that a job asks for is counted and not taken", "[scheduler]") {
  const Candidate without = {"a", 0, 1, "x", "cpu", false};
  const std::vector<Candidate> live = {without, {"b", 0, 1, "y", "NVIDIA H200"}};
  for (const bool same : {true, false}) {
    CHECK(*ChooseWorkers(live, 1, same, "") == std::vector<std::string>{"b"});
    const absl::Status few = ChooseWorkers(live, 2, same, "").status();
    CHECK(absl::IsUnavailable(few));
    CHECK(few.message() ==
          "waiting for workers: 2 wanted, 2 there, 0 of them with another job, 1 without the GPU "
          "that spec.worker asks for (`strata nodes` shows theirs)");
  }
  CHECK(*ChooseServers(live, 1) == std::vector<std::string>{"b"});
  const absl::Status few = ChooseServers(live, 2).status();
  CHECK(absl::IsUnavailable(few));
  CHECK(
      few.message() ==
      "waiting for servers: 2 wanted, 2 there, 1 without a GPU for spec.storage.gpuBytesPerServer "
      "(start them with --device, or give spec.storage.gpuBackend: host)");
}

TEST_CASE("a job is refused where nodes are there and no known one has its GPU", "[scheduler]") {
  Membership members(absl::Seconds(10));
  const absl::Time start = absl::FromUnixSeconds(1000);
  uint64_t session = 1;
  const auto report = [&](const char* name, NodeRole role, const char* device, absl::Time now) {
    NodeReport node;
    node.set_name(name);
    node.set_role(role);
    node.set_incarnation(session);
    node.set_device(device);
    node.set_data_address(name);
    REQUIRE(members.Report(node, now, session).ok());
  };
  JobSpec plain, bf16, named, tier;
  bf16.mutable_worker()->set_precision("bf16");
  named.mutable_worker()->set_device("cuda:GPU-1");
  tier.mutable_storage()->set_gpu_backend("cuda");
  tier.mutable_storage()->set_gpu_bytes_per_server("1MiB");
  const auto told = [&](const JobSpec& spec) {
    return std::string(CheckGpus(spec, members).message());
  };
  for (const JobSpec& spec : {plain, bf16, named, tier}) CHECK(CheckGpus(spec, members).ok());

  report("s0", SERVER, "", start);
  report("w0", WORKER, "", start);
  report("w1", WORKER, "", start);
  CHECK(CheckGpus(plain, members).ok());
  for (const JobSpec& spec : {bf16, named, tier}) {
    CHECK(absl::IsFailedPrecondition(CheckGpus(spec, members)));
  }
  CHECK(told(bf16) ==
        "spec.worker.precision is bf16, for which a worker needs a GPU, but of the 2 workers there "
        "none has that GPU (`strata nodes` shows theirs); start strata-worker with --device, or "
        "give fp32");
  CHECK(told(named).find("spec.worker.device is cuda:GPU-1, but of the 2 workers") == 0);
  CHECK(told(tier).find("spec.storage.gpuBytesPerServer is 1MiB, ") == 0);
  CHECK(told(tier).find("give spec.storage.gpuBackend: host") != std::string::npos);
  JobSpec host = tier;
  host.mutable_storage()->set_gpu_backend("host");
  *host.mutable_worker() = bf16.worker();
  host.mutable_worker()->set_device("host");
  CHECK(CheckGpus(host, members).ok());

  report("s1", SERVER, "GPU-7", start);
  report("w2", WORKER, "GPU-7", start);
  CHECK(CheckGpus(bf16, members).ok());
  CHECK(CheckGpus(tier, members).ok());
  CHECK(absl::IsFailedPrecondition(CheckGpus(named, members)));
  // One that is silent may come back, and is waited for.
  for (int second = 0; second < 60; ++second) members.Listen(start + absl::Seconds(second));
  report("s0", SERVER, "", start + absl::Seconds(60));
  report("w0", WORKER, "", start + absl::Seconds(60));
  members.Listen(start + absl::Seconds(60));
  members.Expire();
  REQUIRE_FALSE(members.Find("w2")->alive);
  CHECK(CheckGpus(bf16, members).ok());
  CHECK(CheckGpus(tier, members).ok());
}

TEST_CASE("what a worker computes with is the job's to say, where the worker has it",
          "[scheduler]") {
  NodeRecord plain, with_gpu;
  plain.set_numerics_id("cpu-1");
  with_gpu.set_numerics_id("cpu-1");
  with_gpu.set_device("GPU-12ab");
  with_gpu.set_device_numerics_id("NVIDIA H200, 132 SMs");
  const char* precision = "fp32";
  const auto id = [&precision](const char* device, const NodeRecord& worker) -> std::string {
    WorkerSpec spec;
    spec.set_device(device);
    spec.set_precision(precision);
    Candidate candidate;
    return ComputesWith(spec, worker, candidate)
               ? candidate.numerics_id + " / " + candidate.device_class
               : "none";
  };
  // A job from before there was a choice has none.
  for (const char* device : {"", "auto"}) {
    CHECK(id(device, plain) == "cpu-1 / cpu");
    CHECK(id(device, with_gpu) == "NVIDIA H200, 132 SMs / NVIDIA H200, 132 SMs");
  }
  CHECK(id("cpu", plain) == "cpu-1 / cpu");
  CHECK(id("cpu", with_gpu) == "cpu-1 / cpu");
  CHECK(id("host", plain) == "host of cpu-1 / host");
  CHECK(id("host", with_gpu) == "host of cpu-1 / host");
  CHECK(id("cuda:GPU-12", plain) == "none");
  CHECK(id("cuda:GPU-12", with_gpu) == "NVIDIA H200, 132 SMs / NVIDIA H200, 132 SMs");
  CHECK(id("cuda:GPU-99", with_gpu) == "none");
  precision = "tf32";
  CHECK(id("auto", plain) == "none");
  CHECK(id("auto", with_gpu) == "NVIDIA H200, 132 SMs / NVIDIA H200, 132 SMs");
  CHECK(id("host", plain) == "host of cpu-1 / host");
}

TEST_CASE("shards cover all partitions once, evenly over servers", "[scheduler]") {
  JobSpec spec;
  spec.mutable_storage()->set_partitions(64);
  for (uint32_t servers : {1u, 2u, 3u, 64u}) {
    for (uint32_t cores : {1u, 8u, 100u}) {
      const auto shards = PlaceShards(spec, servers, cores);
      uint32_t next = 0;
      std::vector<uint32_t> held(servers);
      for (const ShardAssignment& s : shards) {
        REQUIRE(s.first_partition() == next);
        REQUIRE(s.last_partition() >= s.first_partition());
        next = s.last_partition() + 1;
        ++held.at(s.server());
      }
      REQUIRE(next == 64);
      for (uint32_t n : held) REQUIRE(n == held[0]);
      REQUIRE(held[0] == std::min(std::max(4u, cores), 64 / servers));
    }
  }
}

}  // namespace
}  // namespace strata::scheduler

#include "scheduler/nodes/room.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "proto/job/memory_need.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "scheduler/nodes/membership.h"
#include "scheduler/nodes/placement.h"

namespace strata::scheduler {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

MemoryNeed Bytes(uint64_t dram, uint64_t disk = 0, uint64_t gpu = 0) {
  MemoryNeed need;
  need.set_dram_bytes(dram);
  need.set_disk_bytes(disk);
  need.set_gpu_bytes(gpu);
  return need;
}

// Servers that report.
class Cluster {
 public:
  void Add(const std::string& name, const std::string& machine, uint64_t memory,
           bool given = false) {
    NodeReport report;
    report.set_machine_id(machine);
    report.set_memory_bytes(memory);
    report.set_memory_given(given);
    Add(name, report);
  }
  void Add(const std::string& name, const NodeReport& has) {
    NodeReport& report = reports_[name];
    report = has;
    report.set_name(name);
    report.set_role(SERVER);
    report.set_incarnation(1);
    report.set_data_address("a:1");
    REQUIRE(members_.Report(report, now_, next_session_).ok());
  }
  // The others go on until its lease has lapsed.
  void Silence(const std::string& silent) {
    for (int i = 0; i < 40; ++i) {
      now_ += absl::Milliseconds(500);
      members_.Listen(now_);
      for (const auto& [name, report] : reports_) {
        if (name != silent) REQUIRE(members_.Report(report, now_, next_session_).ok());
      }
      members_.Expire();
    }
    REQUIRE_FALSE(members_.Find(silent)->alive);
  }
  uint64_t Dram(const std::string& name, const std::string& host = "") const {
    const auto hosts = [&host](absl::string_view node) { return node == host; };
    return WholeRooms(members_, hosts).at(name).whole.dram_bytes();
  }
  const Membership& members() const { return members_; }
  Rooms rooms() const {
    return WholeRooms(members_, [](absl::string_view) { return false; });
  }

 private:
  Membership members_{absl::Seconds(10)};
  std::map<std::string, NodeReport> reports_;
  absl::Time now_ = absl::FromUnixSeconds(1000);
  uint64_t next_session_ = 1;
};

TEST_CASE("servers of one machine share what was not given to them", "[room]") {
  Cluster cluster;
  cluster.Add("alone", "m1", 8 * kGiB);
  cluster.Add("a", "m2", 24 * kGiB);
  cluster.Add("b", "m2", 24 * kGiB);
  cluster.Add("given", "m2", 4 * kGiB, true);
  cluster.Add("nameless", "", 8 * kGiB);
  cluster.Add("other", "", 8 * kGiB);
  CHECK(cluster.Dram("alone") == 8 * kGiB);
  CHECK(cluster.Dram("a") == 10 * kGiB);
  CHECK(cluster.Dram("b") == 10 * kGiB);
  CHECK(cluster.Dram("given") == 4 * kGiB);
  CHECK(cluster.Dram("nameless") == 8 * kGiB);
  // More was given away than there is: next to nothing is left, which is not the same as unknown.
  cluster.Add("greedy", "m2", 30 * kGiB, true);
  CHECK(cluster.Dram("a") == 1);
}

TEST_CASE("servers of one file system and of one GPU share them", "[room]") {
  Cluster cluster;
  const auto add = [&](const char* name, const char* disk, const char* device, bool given = false) {
    NodeReport report;
    report.set_machine_id("m");
    report.set_disk_id(disk);
    report.set_disk_bytes(given ? 20 * kGiB : 100 * kGiB);
    report.set_disk_given(given);
    report.set_device(device);
    report.set_gpu_bytes(given ? 10 * kGiB : 80 * kGiB);
    report.set_gpu_given(given);
    cluster.Add(name, report);
  };
  add("a", "d1", "GPU-1");
  add("b", "d1", "GPU-2");
  add("c", "d2", "GPU-2");
  add("given", "d1", "GPU-2", true);
  const Rooms rooms = cluster.rooms();
  CHECK(rooms.at("a").whole.disk_bytes() == 40 * kGiB);
  CHECK(rooms.at("b").whole.disk_bytes() == 40 * kGiB);
  CHECK(rooms.at("c").whole.disk_bytes() == 100 * kGiB);
  CHECK(rooms.at("given").whole.disk_bytes() == 20 * kGiB);
  CHECK(rooms.at("a").whole.gpu_bytes() == 80 * kGiB);
  CHECK(rooms.at("b").whole.gpu_bytes() == 35 * kGiB);
  CHECK(rooms.at("given").whole.gpu_bytes() == 10 * kGiB);
}

// A limiting control group is a machine of its own, and limits memory alone.
TEST_CASE("servers of two control groups share the disk and the GPU that both name", "[room]") {
  Cluster cluster;
  for (const char* name : {"a", "b"}) {
    NodeReport report;
    report.set_machine_id(std::string("boot/group-") + name);
    report.set_memory_bytes(8 * kGiB);
    report.set_disk_id("boot/1");
    report.set_disk_bytes(100 * kGiB);
    report.set_device("GPU-1");
    report.set_gpu_bytes(80 * kGiB);
    cluster.Add(name, report);
  }
  const Rooms rooms = cluster.rooms();
  for (const char* name : {"a", "b"}) {
    CHECK(rooms.at(name).whole.dram_bytes() == 8 * kGiB);
    CHECK(rooms.at(name).whole.disk_bytes() == 50 * kGiB);
    CHECK(rooms.at(name).whole.gpu_bytes() == 40 * kGiB);
  }
}

TEST_CASE("a GPU that is none is each server's own", "[room]") {
  Cluster cluster;
  for (const char* name : {"a", "b"}) {
    NodeReport report;
    report.set_device("host");
    report.set_gpu_bytes(8 * kGiB);
    cluster.Add(name, report);
  }
  CHECK(cluster.rooms().at("a").whole.gpu_bytes() == 8 * kGiB);
}

TEST_CASE("a file system has what is free there once, and what jobs of each server have",
          "[room]") {
  Cluster cluster;
  const auto report = [&](const char* name, uint64_t free, uint64_t jobs, uint64_t given = 0) {
    NodeReport r;
    r.set_disk_id("boot/1");
    r.set_disk_given(given > 0);
    r.set_disk_bytes(given > 0 ? given * kGiB : (free + jobs) * kGiB);
    r.set_disk_job_bytes(jobs * kGiB);
    cluster.Add(name, r);
  };
  const auto share = [&](const char* name) {
    return cluster.rooms().at(name).whole.disk_bytes() / kGiB;
  };
  report("a", 200, 400);
  report("b", 200, 400);
  CHECK(share("a") == 500);
  CHECK(share("b") == 500);
  // Of what was given, what its jobs have is not free either.
  report("c", 200, 100, 300);
  CHECK(share("a") == (200 + 400 + 400 + 100 - 300) / 2);
  CHECK(share("c") == 300);
  // One that is silent saw more free, some time ago.
  cluster.Silence("b");
  report("a", 100, 400);
  const auto hosts = [](absl::string_view name) { return name == "b"; };
  CHECK(WholeRooms(cluster.members(), hosts).at("a").whole.disk_bytes() / kGiB ==
        (100 + 400 + 400 + 100 - 300) / 2);
}

TEST_CASE("a silent server has its share while jobs are on it", "[room]") {
  Cluster cluster;
  cluster.Add("a", "m", 8 * kGiB);
  cluster.Add("b", "m", 8 * kGiB);
  cluster.Silence("b");
  CHECK(cluster.Dram("a") == 8 * kGiB);
  CHECK(cluster.Dram("a", "b") == 4 * kGiB);
}

ServerNeed Need(MemoryNeed least, MemoryNeed likely) {
  ServerNeed need;
  need.least = std::move(least);
  need.likely = std::move(likely);
  return need;
}

TEST_CASE("what is guessed is reserved as far as the server has it, what is asked for whole",
          "[room]") {
  const ServerNeed guessed = Need(Bytes(0), Bytes(6 * kGiB, 9 * kGiB));
  CHECK(ReservedOn(guessed, Bytes(8 * kGiB)).dram_bytes() == 6 * kGiB);
  CHECK(ReservedOn(guessed, Bytes(4 * kGiB)).dram_bytes() == 4 * kGiB);
  CHECK(ReservedOn(guessed, Bytes(0)).dram_bytes() == 6 * kGiB);  // not known
  CHECK(ReservedOn(guessed, Bytes(0, 2 * kGiB)).disk_bytes() == 2 * kGiB);
  const ServerNeed asked = Need(Bytes(5 * kGiB), Bytes(6 * kGiB));
  CHECK(ReservedOn(asked, Bytes(4 * kGiB)).dram_bytes() == 5 * kGiB);
  CHECK_FALSE(EverFits(asked, Bytes(4 * kGiB)));
  CHECK(EverFits(guessed, Bytes(4 * kGiB)));
  CHECK(EverFits(asked, Bytes(0)));
}

TEST_CASE("each of memory, disk and GPU memory can be what a server lacks", "[room]") {
  const ServerNeed need = Need(Bytes(0, 0, kGiB), Bytes(2 * kGiB, 3 * kGiB, kGiB));
  ServerRoom room;
  room.whole = Bytes(4 * kGiB, 6 * kGiB, 2 * kGiB);
  room.held = {{"day", Bytes(2 * kGiB, 3 * kGiB, kGiB)}};
  CHECK(Fits(need, room));
  CHECK(DescribeRoom("s0", need, room).empty());
  room.held.push_back({"night", Bytes(1)});
  CHECK_FALSE(Fits(need, room));
  CHECK(DescribeRoom("s0", need, room) ==
        "s0 has 2.0 GiB of memory free of 4.0 GiB (held: job day 2.0 GiB, job night 1 B)");
  room.held.back().bytes = Bytes(0, 1);
  CHECK_FALSE(Fits(need, room));
  CHECK(absl::StrContains(DescribeRoom("s0", need, room), "of disk free of 6.0 GiB"));
  room.held.back().bytes = Bytes(0, 0, 1);
  CHECK_FALSE(Fits(need, room));
  CHECK(absl::StrContains(DescribeRoom("s0", need, room), "of GPU memory free of 2.0 GiB"));
  // Held beyond what there is: nothing is free.
  room.held.back().bytes = Bytes(9 * kGiB);
  CHECK_FALSE(Fits(need, room));
  CHECK(absl::StrContains(DescribeRoom("s0", need, room), "s0 has 0 B of memory free"));
}

TEST_CASE("what jobs hold beyond a server's share is taken from those beside it", "[room]") {
  const std::string what = GENERATE("memory", "disk", "GPU memory");
  const auto bytes = [&what](uint64_t n) {
    return Bytes(what == "memory" ? n : 0, what == "disk" ? n : 0, what == "GPU memory" ? n : 0);
  };
  const auto has = [](const std::string& of) {
    NodeReport report;
    report.set_machine_id(of);
    report.set_memory_bytes(24 * kGiB);
    report.set_disk_id(of);
    report.set_disk_bytes(24 * kGiB);
    report.set_device("GPU-" + of);
    report.set_gpu_bytes(24 * kGiB);
    return report;
  };
  Cluster cluster;
  for (const char* name : {"a", "b", "c", "d"}) cluster.Add(name, has("m"));
  cluster.Add("elsewhere", has("n"));
  Rooms rooms = cluster.rooms();  // 6 GiB each
  rooms.at("a").held = {{"early", bytes(10 * kGiB)}};
  rooms.at("b").held = {{"early", bytes(8 * kGiB)}};
  rooms.at("c").held = {{"late", bytes(4 * kGiB)}};
  TakeBeside(rooms);
  // 2 GiB of the machine are left: of 8 GiB free, 6 are taken.
  const auto fits = [&](const char* name, uint64_t n) {
    return Fits(Need(bytes(n), bytes(n)), rooms.at(name));
  };
  CHECK_FALSE(fits("a", 1));
  CHECK_FALSE(fits("b", 1));
  CHECK(fits("c", kGiB / 2));
  CHECK_FALSE(fits("c", kGiB / 2 + 1));
  CHECK(fits("d", kGiB + kGiB / 2));
  CHECK_FALSE(fits("d", kGiB + kGiB / 2 + 1));
  CHECK(fits("elsewhere", 24 * kGiB));
  const ServerNeed need = Need(bytes(5 * kGiB), bytes(5 * kGiB));
  CHECK(EverFits(need, rooms.at("d").whole));
  CHECK(DescribeRoom("c", need, rooms.at("c")) ==
        "c has 512.0 MiB of " + what +
            " free of 6.0 GiB (held: job late 4.0 GiB, jobs on servers beside it 1.5 GiB)");
  CHECK(absl::StrContains(DescribeRoom("d", need, rooms.at("d")),
                          "(held: jobs on servers beside it 4.5 GiB)"));
  // More is held than the machine has.
  rooms.at("a").held = {{"early", bytes(20 * kGiB)}};
  TakeBeside(rooms);
  CHECK_FALSE(fits("c", 1));
  CHECK_FALSE(fits("d", 1));
}

TEST_CASE("what was given to a server is not taken by those beside it", "[room]") {
  Cluster cluster;
  cluster.Add("a", "m", 24 * kGiB);
  cluster.Add("b", "m", 24 * kGiB);
  cluster.Add("given", "m", 8 * kGiB, true);  // and 8 GiB for each of the others
  Rooms rooms = cluster.rooms();
  rooms.at("a").held = {{"early", Bytes(10 * kGiB)}};
  TakeBeside(rooms);
  CHECK(Fits(Need(Bytes(8 * kGiB), Bytes(8 * kGiB)), rooms.at("given")));
  CHECK(rooms.at("b").taken_beside.dram_bytes() == 2 * kGiB);
  // Its own overhang is the others' (it was given more before it was started again).
  rooms.at("a").held.clear();
  rooms.at("given").held = {{"early", Bytes(10 * kGiB)}};
  TakeBeside(rooms);
  CHECK(rooms.at("a").taken_beside.dram_bytes() == kGiB);
  CHECK(rooms.at("b").taken_beside.dram_bytes() == kGiB);
}

TEST_CASE("servers that have room are taken, and the others told with what they lack", "[room]") {
  const ServerNeed need = Need(Bytes(0), Bytes(2 * kGiB));
  std::vector<Candidate> live = {{"a", 0}, {"b", 1}, {"c", 2}, {"d", 3}};
  for (Candidate& c : live) c.room.whole = Bytes(4 * kGiB);
  live[0].room.held = {{"big", Bytes(3 * kGiB)}};
  CHECK(*ChooseServers(live, 3, need) == std::vector<std::string>{"b", "c", "d"});
  const absl::Status few = ChooseServers(live, 4, need).status();
  CHECK(absl::IsResourceExhausted(few));
  CHECK(few.message() ==
        "waiting for room: 4 servers wanted with 2.0 GiB of memory each, 3 have it; a has 1.0 GiB "
        "of memory free of 4.0 GiB (held: job big 3.0 GiB)");
  CHECK(absl::IsUnavailable(ChooseServers(live, 5, need).status()));
  ServerNeed guessed = need;
  guessed.guessed = true;
  guessed.rows = 77;
  CHECK(absl::StrContains(ChooseServers(live, 4, guessed).status().message(),
                          "(an estimate, with 77 rows of features: "
                          "spec.storage.dramBytesPerServer is not set"));
  for (Candidate& c : live) c.room.held = {{"big", Bytes(3 * kGiB)}};
  live.push_back(live.back());
  live.back().name = "e";
  CHECK(absl::StrContains(ChooseServers(live, 1, need).status().message(), "; and 1 more"));
}

JobSpec Asks(const std::string& dram, uint32_t servers) {
  JobSpec spec;
  spec.mutable_storage()->set_dram_bytes_per_server(dram);
  spec.mutable_storage()->set_gpu_bytes_per_server("0");
  spec.mutable_replicas()->set_servers(servers);
  return spec;
}

TEST_CASE("a job that asks for more than enough servers will ever have is refused", "[room]") {
  Cluster cluster;
  // Too few servers are there: others may come.
  CHECK(CheckRoom(Asks("5GiB", 1), cluster.members(), cluster.rooms()).ok());
  cluster.Add("a", "m1", 4 * kGiB);
  cluster.Add("b", "m2", 8 * kGiB);
  CHECK(CheckRoom(Asks("5GiB", 1), cluster.members(), cluster.rooms()).ok());
  CHECK(CheckRoom(Asks("5GiB", 3), cluster.members(), cluster.rooms()).ok());
  CHECK(CheckRoom(Asks("0", 2), cluster.members(), cluster.rooms()).ok());
  const absl::Status never = CheckRoom(Asks("5GiB", 2), cluster.members(), cluster.rooms());
  CHECK(absl::IsFailedPrecondition(never));
  CHECK(never.message() ==
        "spec.storage.dramBytesPerServer asks for 5.0 GiB on each of 2 servers, but of the 2 that "
        "are known 1 could ever take that (the most that jobs may have of one is 8.0 GiB of "
        "memory; `strata nodes` shows all); lower it, or give servers more (strata-server "
        "--memory-bytes, --gpu-bytes)");
  cluster.Add("c", "m3", 0);  // says nothing
  CHECK(CheckRoom(Asks("5GiB", 2), cluster.members(), cluster.rooms()).ok());
}

}  // namespace
}  // namespace strata::scheduler

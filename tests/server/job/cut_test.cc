// Cuts of a job on one server, synchronous and asynchronous.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/runtime/base/failpoints.h"
#include "proto/runtime/files/finished_file.h"
#include "proto/runtime/files/manifest_io.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/wire/message_codec.h"
#include "server/protocol/cut_barrier.h"
#include "server/shard/request.h"
#include "tests/server/job/bench.h"
#include "tests/server/job/two_lanes.h"
#include "tests/server/shard/shard_fixture.h"

namespace strata::server {
namespace {

TEST_CASE("cuts: exactly at the step, refused when past, failed with the disk", "[service][cut]") {
  const auto references = References(1, 1, 3);
  JobBench bench(1);
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  ServerJobDirective d;
  d.set_map_epoch(5);
  CutDirective* cut = d.add_cuts();
  cut->set_cut(1);
  cut->set_step(2);
  auto job = bench.service_.Find(JobId(1));
  job->Follow(d);
  REQUIRE(bench.PushStep(1, 1, {{0, 1}}).ok());
  REQUIRE(job->Report().cuts_size() == 0);
  REQUIRE(bench.PushStep(1, 2, {{0, 1}}).ok());
  REQUIRE(bench.PushStep(1, 3, {{0, 1}}).ok());
  ServerJobReport report = job->Report();
  REQUIRE(report.cuts_size() == 1);
  REQUIRE(report.cuts(0).state() == CutReport::DONE);
  REQUIRE(report.cuts(0).step() == 2);
  storage::HashSum sum;
  for (const CheckpointFile& f : report.cuts(0).files()) {
    sum += storage::HashSum{f.hash_low(), f.hash_high()};
  }
  REQUIRE(sum == references[2].Hash());
  cut->set_cut(2);
  job->Follow(d);
  bench.pool_.RunAll();
  report = job->Report();
  REQUIRE(report.cuts_size() == 1);
  REQUIRE(report.cuts(0).cut() == 2);
  REQUIRE(report.cuts(0).state() == CutReport::REFUSED);
  cut->set_cut(3);
  cut->set_step(3);
  cut->set_directory("/dev/null/step");
  job->Follow(d);
  bench.pool_.RunAll();
  REQUIRE(job->Report().cuts(0).state() == CutReport::FAILED);
  cut->set_cut(4);
  const std::string folder = bench.folder_.path() + "/checkpoints/step-3";  // made on demand
  cut->set_directory(folder);
  job->Follow(d);
  bench.pool_.RunAll();
  report = job->Report();
  REQUIRE(report.cuts(0).state() == CutReport::DONE);
  for (const CheckpointFile& f : report.cuts(0).files()) {
    REQUIRE(std::filesystem::file_size(folder + "/" + f.name()) == f.bytes());
  }
  job.reset();
}

TEST_CASE("a cut's bytes are told while its files are written", "[service][cut]") {
  JobBench bench(1);
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  REQUIRE(bench.PushStep(1, 1, {{0, 1}}).ok());
  ServerJobDirective d;
  d.set_map_epoch(5);
  CutDirective* cut = d.add_cuts();
  cut->set_cut(1);
  cut->set_step(1);
  cut->set_directory(bench.folder_.path() + "/step-1");
  auto job = bench.service_.Find(JobId(1));
  job->Follow(d);
  uint64_t written = 0, told = 0;
  while (bench.pool_.RunOne()) {
    const ServerJobReport report = job->Report();
    if (report.cuts_size() == 0 || report.cuts(0).state() == CutReport::DONE) continue;
    const CutReport& now = report.cuts(0);
    CHECK(now.state() == CutReport::STATE_UNSPECIFIED);
    CHECK(now.cut() == 1);
    CHECK(now.written_bytes() >= written);
    CHECK(now.written_bytes() <= now.total_bytes());
    CHECK(job->cut_bytes().written == now.written_bytes());
    CHECK(job->cut_bytes().total == now.total_bytes());
    told += now.written_bytes() > written;
    written = now.written_bytes();
  }
  CHECK(told > 0);
  const ServerJobReport done = job->Report();
  REQUIRE(done.cuts(0).state() == CutReport::DONE);
  uint64_t bytes = 0;
  for (const CheckpointFile& f : done.cuts(0).files()) bytes += f.bytes();
  CHECK(done.cuts(0).written_bytes() == bytes);
  CHECK(done.cuts(0).total_bytes() == bytes);
  CHECK(job->cut_bytes().total == 0);  // nothing is under way any more
}

// What has its name; files that are being written go with their writer.
std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".tmp") names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

TEST_CASE("what a cut links into its folder is its own: tries do not touch each other's",
          "[service][cut]") {
  const auto references = References(1, 1, 3);
  JobBench bench(1);
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  auto job = bench.service_.Find(JobId(1));
  const auto order = [&](uint64_t number, uint64_t step, uint64_t base) {
    ServerJobDirective d;
    d.set_map_epoch(5);
    if (number > 0) {
      CutDirective* cut = d.add_cuts();
      cut->set_cut(number);
      cut->set_step(step);
      cut->set_base(base);
      cut->set_follow(true);
      cut->set_directory(bench.folder_.path() + "/step-" + std::to_string(step));
    }
    job->Follow(d);
  };
  REQUIRE(bench.PushStep(1, 1, {{0, 1}}).ok());
  order(1, 1, 0);
  bench.pool_.RunAll();
  REQUIRE(job->Report().cuts(0).state() == CutReport::DONE);
  const std::string full = job->Report().cuts(0).files(0).name();

  // Another try at this step left its link, and somebody will remove that later.
  const std::string folder = bench.folder_.path() + "/step-2";
  std::filesystem::create_directory(folder);
  std::ofstream(folder + "/" + full) << "another try's";
  REQUIRE(bench.PushStep(1, 2, {{0, 1}}).ok());
  order(2, 2, 1);
  bench.pool_.RunAll();
  const ServerJobReport report = job->Report();
  REQUIRE(report.cuts(0).state() == CutReport::DONE);
  REQUIRE(std::filesystem::remove(folder + "/" + full));
  Manifest manifest;
  bool increments = false;
  for (const CheckpointFile& file : report.cuts(0).files()) {
    *manifest.add_files() = file;
    increments |= file.sequence() > 0;
  }
  CHECK(increments);
  const absl::Status whole = VerifyCheckpointFiles(folder, manifest);
  INFO(whole);
  CHECK(whole.ok());
  CHECK(CheckFinished(folder, manifest).ok());

  // One that is dropped takes its links with it, and nothing else.
  const std::string dropped = bench.folder_.path() + "/step-3";
  std::filesystem::create_directory(dropped);
  std::ofstream(dropped + "/" + full) << "another try's";
  const std::vector<std::string> before = NamesIn(dropped);
  REQUIRE(bench.PushStep(1, 3, {{0, 1}}).ok());
  {
    const ScopedFailpoint fails("server.snapshot.finish",
                                {.act = FailWith(absl::UnavailableError("gone"))});
    order(3, 3, 2);
    bench.pool_.RunAll();
  }
  REQUIRE(job->Report().cuts(0).state() == CutReport::FAILED);
  order(0, 0, 0);
  bench.pool_.RunAll();
  CHECK(NamesIn(dropped) == before);
  job.reset();
}

TEST_CASE("a cut that is given up takes a finished file along of which nobody was told",
          "[service][cut]") {
  JobBench bench(1);
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  REQUIRE(bench.PushStep(1, 1, {{0, 1}}).ok());
  const std::string folder = bench.folder_.path() + "/step-1";
  auto job = bench.service_.Find(JobId(1));
  const auto order = [&](uint64_t number) {
    ServerJobDirective d;
    d.set_map_epoch(5);
    if (number > 0) {
      CutDirective* cut = d.add_cuts();
      cut->set_cut(number);
      cut->set_step(1);
      cut->set_directory(folder);
    }
    job->Follow(d);
  };
  std::vector<std::string> untold;
  const auto give_up = [&] {
    untold = NamesIn(folder);
    order(0);
    return absl::OkStatus();
  };
  {
    // The file has its name, and its shard does not know it yet.
    const ScopedFailpoint between("server.snapshot.finished", {.act = give_up, .hits = 1});
    order(1);
    bench.pool_.RunAll();
  }
  REQUIRE(untold.size() == 1);
  const std::vector<std::string> left = NamesIn(folder);
  CHECK(std::find(left.begin(), left.end(), untold[0]) == left.end());

  // What was told of stays: its manifest may be being written.
  order(2);
  bench.pool_.RunAll();
  REQUIRE(job->Report().cuts(0).state() == CutReport::DONE);
  const std::vector<std::string> told = NamesIn(folder);
  order(0);
  bench.pool_.RunAll();
  CHECK(NamesIn(folder) == told);
  job.reset();
}

// One cause of several is told, by which the scheduler judges whether to try again.
TEST_CASE("a server says why a cut failed, and what no try can mend before what may pass",
          "[service][cut]") {
  using absl::StatusCode;
  const struct {
    std::vector<absl::Status> shards;
    StatusCode told;
  } table[] = {
      {{absl::ResourceExhaustedError("full")}, StatusCode::kResourceExhausted},
      {{absl::OkStatus(), absl::UnavailableError("EIO")}, StatusCode::kUnavailable},
      {{absl::UnavailableError("EIO"), absl::PermissionDeniedError("no")},
       StatusCode::kPermissionDenied},
      {{absl::PermissionDeniedError("no"), absl::UnavailableError("EIO")},
       StatusCode::kPermissionDenied},
  };
  for (const auto& row : table) {
    JobBench bench(1);
    bench.Start();
    REQUIRE(bench.OpenSession().ok());
    REQUIRE(bench.PushStep(1, 1, {{0, 1}}).ok());
    auto job = bench.service_.Find(JobId(1));
    size_t shard = 0;
    const auto next = [&] {
      return shard < row.shards.size() ? row.shards[shard++] : absl::Status();
    };
    const ScopedFailpoint fails("server.snapshot.finish", {.act = next});
    ServerJobDirective d;
    d.set_map_epoch(5);
    CutDirective* cut = d.add_cuts();
    cut->set_cut(1);
    cut->set_step(1);
    cut->set_directory(bench.folder_.path() + "/step-1");
    job->Follow(d);
    bench.pool_.RunAll();
    const CutReport report = job->Report().cuts(0);
    CHECK(report.state() == CutReport::FAILED);
    CHECK(static_cast<StatusCode>(report.code()) == row.told);
    for (const absl::Status& s : row.shards) {
      if (s.code() == row.told) CHECK(report.message() == s.message());
    }
    job.reset();
  }
}

TEST_CASE("asynchronous: applied on arrival, once; an aligned cut", "[service][async]") {
  JobBench bench(2, /*synchronous=*/false);
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  const auto push = [&](uint64_t task, uint64_t window, uint64_t cut) {
    wire::PushFields f;
    f.task = TaskId(task);
    f.window = window;
    f.cut = cut;
    return bench.Call(DataMethod::kPush, bench.PushMessage(1, task * 10 + window, {{0, 1}}, f));
  };
  const auto mark = [&](uint32_t lane, uint64_t cut) {
    wire::MarkRequest m;
    m.header = bench.header();
    m.sequence = bench.NextSequence();
    m.lane = LaneId(lane);
    m.cut = cut;
    m.task = TaskId(lane);
    m.window = 7;
    REQUIRE(bench.Call(DataMethod::kMark, wire::EncodeMarkRequest(m))->value().ok());
  };
  Reference reference;
  REQUIRE(push(0, 0, 0)->value().ok());
  reference.Apply(NodeWork(1, 0, {0, 1}), 1);
  REQUIRE(wire::ParsePushReply(push(0, 0, 0)->value()->span())->repeated);
  ServerJobDirective d;
  d.set_map_epoch(5);
  d.add_cuts()->set_cut(1);
  auto job = bench.service_.Find(JobId(1));
  job->Follow(d);
  mark(0, 1);
  auto held = push(0, 1, 1);
  REQUIRE_FALSE(held->has_value());
  auto again = push(0, 1, 1);  // a retry takes its place
  REQUIRE(absl::IsUnavailable(held->value().status()));
  REQUIRE(push(5, 0, 0)->value().ok());
  reference.Apply(NodeWork(1, 50, {0, 1}), 2);
  REQUIRE(job->Report().cuts_size() == 0);
  REQUIRE_FALSE(again->has_value());
  mark(1, 1);
  REQUIRE(again->value().ok());
  const ServerJobReport report = job->Report();
  REQUIRE(report.cuts(0).state() == CutReport::DONE);
  REQUIRE(report.cuts(0).lanes_size() == 2);
  REQUIRE(report.cuts(0).lanes(1).next_window() == 7);
  storage::HashSum sum;
  for (const CheckpointFile& f : report.cuts(0).files()) {
    sum += storage::HashSum{f.hash_low(), f.hash_high()};
  }
  REQUIRE(sum == reference.Hash());
  REQUIRE(report.windows() == 9);
  job.reset();
}

TEST_CASE("a cut that is given up holds nobody, also when none follows", "[service][async][cut]") {
  TwoLanes t;
  t.Follow(1, 0);
  t.Mark(0, 1);
  const auto held = t.Push(1, 1);
  REQUIRE_FALSE(held->has_value());
  t.Follow(0, 1);  // another server has failed it
  REQUIRE(held->value().ok());
  REQUIRE(t.Push(2, 1)->value().ok());
  CHECK(t.job->Report().given_up_through() == 1);
  t.Mark(1, 1);  // which was told late
  CHECK(t.job->Report().cuts_size() == 0);
  t.CheckNext(2, 3);
  t.job.reset();
}

// It remembers no cut that was given up, and no cut is pending now.
TEST_CASE("a server that began again is told what is over", "[service][async][cut]") {
  TwoLanes t;
  const auto early = t.Push(1, 4);
  REQUIRE(absl::IsUnavailable(early->value().status()));
  t.Follow(0, 4);
  REQUIRE(t.Push(1, 4)->value().ok());
  t.Follow(0, 4);
  REQUIRE(t.Push(2, 4)->value().ok());
  t.CheckNext(5, 3);
  t.job.reset();
}

TEST_CASE("a cut that cannot be noted has failed, and is over", "[service][async][cut]") {
  TwoLanes t;
  t.Follow(1, 0);
  t.Mark(0, 1);
  const auto held = t.Push(1, 1);
  REQUIRE_FALSE(held->has_value());
  {
    // Of three shards the first.
    const ScopedFailpoint fail("log.append",
                               {.act = FailWith(absl::UnavailableError("disk")), .hits = 1});
    t.Mark(1, 1);
  }
  REQUIRE(held->value().ok());
  CHECK(t.StateOf(1) == CutReport::FAILED);
  CHECK(t.job->Report().given_up_through() == 1);
  t.CheckNext(2, 2);
  t.job.reset();
}

// The scheduler is gone after it told lane 0 and nobody else.
TEST_CASE("a server ends a cut itself when lanes do not mark it, for good",
          "[service][async][cut]") {
  TwoLanes t;
  const bool ordered = GENERATE(true, false);
  if (ordered) t.Follow(1, 0);
  t.Mark(0, 1);
  const auto held = t.Push(1, 1);
  t.Pass(CutBarrier::kPatience - absl::Milliseconds(1));
  REQUIRE_FALSE(held->has_value());
  const auto again = t.Push(1, 1);  // a retry does not begin the wait anew
  REQUIRE(absl::IsUnavailable(held->value().status()));
  t.Pass(absl::Milliseconds(1));
  REQUIRE(again->value().ok());
  REQUIRE(t.Push(2, 1)->value().ok());
  t.Follow(1, 0);  // it is back, and wants the cut still
  CHECK(t.StateOf(1) == CutReport::REFUSED);
  t.Mark(1, 1);
  CHECK(t.StateOf(1) == CutReport::REFUSED);
  t.CheckNext(2, 3);
  t.job.reset();
}

TEST_CASE("shards that disagree on where lanes stand make no cut", "[service][async][cut]") {
  TwoLanes t;
  t.Follow(1, 0);
  t.Mark(0, 1);
  // As two tries under one number would.
  const auto ignore = [](const absl::StatusOr<Buffer>&) {};
  uint64_t window = 0;
  for (const auto& shard : t.job->shards()) {
    shard->Mark(std::make_shared<MarkCall>(wire::ServerState{}, 1, ignore), 1, 1,
                {TaskId(1), ++window / 3});
  }
  t.bench.pool_.RunAll();
  CHECK(t.StateOf(1) == CutReport::FAILED);
  t.job.reset();
}

}  // namespace
}  // namespace strata::server

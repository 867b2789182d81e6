// Cuts of a job on one server, synchronous and asynchronous.
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "proto/strata/checkpoint.pb.h"
#include "proto/wire/message_codec.h"
#include "tests/server/job/bench.h"
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

}  // namespace
}  // namespace strata::server

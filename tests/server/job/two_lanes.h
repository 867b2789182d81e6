// An asynchronous job of two lanes on one server.
#ifndef STRATA_TESTS_SERVER_JOB_TWO_LANES_H_
#define STRATA_TESTS_SERVER_JOB_TWO_LANES_H_

#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>

#include "absl/time/time.h"
#include "proto/strata/control.pb.h"
#include "proto/wire/message_codec.h"
#include "server/job/server_job.h"
#include "tests/server/job/bench.h"

namespace strata::server {

// It has applied window 0 of task 0.
struct TwoLanes {
  TwoLanes() : bench(2, /*synchronous=*/false) {
    bench.Start();
    REQUIRE(bench.OpenSession().ok());
    job = bench.service_.Find(JobId(1));
    directive.set_map_epoch(5);
    REQUIRE(Push(0, 0)->value().ok());
  }

  std::shared_ptr<JobBench::Answer> Push(uint64_t window, uint64_t cut) {
    wire::PushFields f;
    f.window = window;
    f.cut = cut;
    return bench.Call(DataMethod::kPush, bench.PushMessage(1, window, {{0, 1}}, f));
  }
  std::shared_ptr<JobBench::Answer> AskToMark(uint32_t lane, uint64_t cut, uint64_t window) {
    wire::MarkRequest m;
    m.header = bench.header();
    m.sequence = bench.NextSequence();
    m.lane = LaneId(lane);
    m.cut = cut;
    m.task = TaskId(lane);
    m.window = window;
    return bench.Call(DataMethod::kMark, wire::EncodeMarkRequest(m));
  }
  void Mark(uint32_t lane, uint64_t cut) { REQUIRE(AskToMark(lane, cut, cut)->value().ok()); }
  // The scheduler's word: `cut` is to be taken (0: none), all up to `given_up` are over.
  void Follow(uint64_t cut, uint64_t given_up) {
    directive.clear_cuts();
    if (cut != 0) directive.add_cuts()->set_cut(cut);
    directive.set_given_up_through(given_up);
    job->Follow(directive);
    bench.pool_.RunAll();
  }
  void Pass(absl::Duration time) {
    bench.timer_.Advance(time);
    bench.pool_.RunAll();
  }
  CutReport::State StateOf(uint64_t cut) {
    const ServerJobReport all = job->Report();
    for (const CutReport& report : all.cuts()) {
      if (report.cut() == cut) return report.state();
    }
    return CutReport::STATE_UNSPECIFIED;
  }
  // The next cut can be taken, with each window pushed so far in it once.
  void CheckNext(uint64_t cut, uint64_t windows) {
    Follow(cut, cut - 1);
    for (uint32_t lane = 0; lane < 2; ++lane) Mark(lane, cut);
    const ServerJobReport report = job->Report();
    CHECK(StateOf(cut) == CutReport::DONE);
    CHECK(report.windows() == 3 * windows);  // of three shards
    CHECK(report.given_up_through() == cut);
  }

  JobBench bench;
  std::shared_ptr<ServerJob> job;
  ServerJobDirective directive;
};

}  // namespace strata::server

#endif  // STRATA_TESTS_SERVER_JOB_TWO_LANES_H_

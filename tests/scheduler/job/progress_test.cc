#include "scheduler/job/progress.h"

#include <catch2/catch.hpp>

#include "proto/job/job_plan.h"

namespace strata::scheduler {
namespace {

TEST_CASE("steps and lines add up, counted lane by lane", "[scheduler]") {
  for (uint64_t lines : {1, 7, 64, 100, 1000}) {
    for (uint32_t lanes : {1u, 3u, 8u}) {
      for (uint32_t batch : {1u, 5u, 64u}) {
        JobSpec spec;
        spec.mutable_training()->set_mode("bsp");
        spec.mutable_training()->set_lanes(lanes);
        spec.mutable_training()->set_batch_size(batch);
        spec.mutable_training()->set_epochs(2);
        // The slow way: lanes take their batches until nobody has anything.
        uint64_t steps = 0, taken = 0;
        for (int epoch = 0; epoch < 2; ++epoch) {
          std::vector<uint64_t> left(lanes, lines / lanes);
          for (uint64_t l = 0; l < lines % lanes; ++l) ++left[l];
          while (true) {
            uint64_t now = 0;
            for (uint64_t& l : left) {
              const uint64_t n = std::min<uint64_t>(l, batch);
              l -= n;
              now += n;
            }
            if (now == 0) break;
            taken += now;
            ++steps;
            REQUIRE(LinesAtStep(spec.training(), lines, steps) == taken);
          }
        }
        InputIndex index;
        index.set_lines(lines);
        REQUIRE(TotalSteps(spec, index) == steps);
        REQUIRE(taken == 2 * lines);
      }
    }
  }
}

TEST_CASE("async counts windows, which never span tasks", "[scheduler]") {
  JobSpec spec;
  spec.mutable_training()->set_mode("async");
  spec.mutable_training()->set_batch_size(10);
  spec.mutable_training()->set_epochs(3);
  InputIndex index;
  index.add_tasks()->set_lines(25);
  index.add_tasks()->set_lines(10);
  REQUIRE(TotalSteps(spec, index) == 12);
}

TEST_CASE("one result per step, in order", "[scheduler]") {
  google::protobuf::RepeatedPtrField<EvaluationResult> list;
  for (uint64_t step : {10, 30, 20, 30, 10}) {
    EvaluationResult e;
    e.set_step(step);
    e.set_auc(static_cast<double>(list.size()));
    AddEvaluation(e, list);
  }
  REQUIRE(list.size() == 3);
  REQUIRE(list[0].step() == 10);
  REQUIRE(list[1].step() == 20);
  REQUIRE(list[2].step() == 30);
  REQUIRE(list[2].auc() == 3);
}

TEST_CASE("the newest evaluations are remembered, and the best", "[scheduler]") {
  google::protobuf::RepeatedPtrField<EvaluationResult> list;
  EvaluationResult result;
  constexpr uint64_t kBest = 3;
  for (uint64_t step = 1; step <= 5 * kMaxEvaluations; ++step) {
    result.set_step(step);
    AddEvaluation(result, list);
    // A worker that was not told yet that the scheduler has it says it again.
    result.set_step(1);
    AddEvaluation(result, list);
    DropEvaluations(kMaxEvaluations, kBest, list);
    REQUIRE(list.size() <= static_cast<int>(kMaxEvaluations));
  }
  REQUIRE(list.size() == static_cast<int>(kMaxEvaluations));
  CHECK(list[0].step() == kBest);
  for (int i = 1; i < list.size(); ++i) {
    REQUIRE(list[i].step() == 5 * kMaxEvaluations - kMaxEvaluations + 1 + static_cast<uint64_t>(i));
  }
}

}  // namespace
}  // namespace strata::scheduler

#include "worker/data/index/epoch_plan.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "proto/core/position.h"

namespace strata {
namespace {

// (task, line of the task) of a stream position.
std::vector<std::pair<uint32_t, uint32_t>> StreamOf(const EpochPlan& plan, uint64_t epoch) {
  std::vector<std::pair<uint32_t, uint32_t>> stream;
  for (const uint32_t task : plan.TaskOrder(epoch)) {
    for (uint32_t i = 0; i < plan.task_lines(task); ++i) stream.emplace_back(task, i);
  }
  return stream;
}

// All lines of an epoch in the order in which lanes read them.
std::vector<std::pair<uint32_t, uint32_t>> EpochLines(const EpochPlan& plan, uint64_t epoch) {
  const auto stream = StreamOf(plan, epoch);
  std::vector<std::pair<uint32_t, uint32_t>> lines;
  const uint64_t buffer = plan.options().buffer_lines;
  for (uint64_t s = 0; s < plan.StepsPerEpoch(); ++s) {
    for (uint32_t l = 0; l < plan.options().lanes; ++l) {
      const LineRange lane = plan.LaneRange(LaneId(l));
      const LineRange batch = plan.BatchRange(s, LaneId(l));
      REQUIRE(batch.size() <= plan.options().batch_size);
      for (uint64_t p = batch.begin; p < batch.end; ++p) {
        const uint64_t block = p / buffer;
        const uint64_t size = std::min(buffer, lane.size() - block * buffer);
        const auto order = plan.BlockOrder(epoch, LaneId(l), block, static_cast<uint32_t>(size));
        lines.push_back(stream[lane.begin + block * buffer + order[p % buffer]]);
      }
    }
  }
  return lines;
}

}  // namespace

TEST_CASE("every line is read exactly once in an epoch, whatever the sizes", "[data][plan]") {
  uint64_t random = 1;
  for (int round = 0; round < 200; ++round) {
    const auto draw = [&](uint64_t below) { return Mix64(random++) % below; };
    std::vector<uint32_t> tasks(1 + draw(6));
    for (uint32_t& lines : tasks) lines = static_cast<uint32_t>(1 + draw(40));
    EpochPlanOptions options;
    options.lanes = static_cast<uint32_t>(1 + draw(9));
    options.batch_size = static_cast<uint32_t>(1 + draw(12));
    options.buffer_lines = static_cast<uint32_t>(1 + draw(30));
    options.seed = draw(1000);
    options.shuffle = draw(4) != 0;
    const EpochPlan plan(tasks, options);
    CAPTURE(round, options.lanes, options.batch_size, options.buffer_lines, plan.lines());
    for (uint64_t epoch = 0; epoch < 2; ++epoch) {
      auto lines = EpochLines(plan, epoch);
      REQUIRE(lines.size() == plan.lines());
      std::sort(lines.begin(), lines.end());
      auto expected = StreamOf(plan, epoch);
      std::sort(expected.begin(), expected.end());
      REQUIRE(lines == expected);
    }
  }
}

TEST_CASE("an epoch has as many steps as its longest lane needs", "[data][plan]") {
  EpochPlanOptions options;
  options.lanes = 4;
  options.batch_size = 5;
  const EpochPlan plan({10, 11}, options);  // lanes of 5, 5, 5, 6
  CHECK(plan.StepsPerEpoch() == 2);
  CHECK(plan.BatchRange(1, LaneId(0)).size() == 0);
  CHECK(plan.BatchRange(1, LaneId(3)) == LineRange{5, 6});
  CHECK(plan.PlaceOf(Step(1)).epoch == 0);
  CHECK(plan.PlaceOf(Step(2)).step == 1);
  CHECK(plan.PlaceOf(Step(3)).epoch == 1);
  CHECK(plan.PlaceOf(Step(3)).step == 0);
}

TEST_CASE("lanes divide lines evenly without overflow", "[data][plan]") {
  EpochPlanOptions options;
  options.lanes = 1000;
  const EpochPlan plan(std::vector<uint32_t>(3'000'000, 4'000'000'000u), options);
  uint64_t at = 0;
  for (uint32_t l = 0; l < 1000; ++l) {
    const LineRange range = plan.LaneRange(LaneId(l));
    REQUIRE(range.begin == at);
    REQUIRE(range.size() == 12'000'000'000'000u);
    at = range.end;
  }
  REQUIRE(at == plan.lines());
}

TEST_CASE("orders differ by seed, epoch, lane and block, and not otherwise", "[data][plan]") {
  EpochPlanOptions options;
  options.lanes = 2;
  const std::vector<uint32_t> tasks(50, 10);
  const EpochPlan plan(tasks, options);
  options.seed = 2;
  const EpochPlan other(tasks, options);
  CHECK(plan.TaskOrder(0) == plan.TaskOrder(0));
  CHECK(plan.TaskOrder(0) != plan.TaskOrder(1));
  CHECK(plan.TaskOrder(0) != other.TaskOrder(0));
  const auto order = plan.BlockOrder(0, LaneId(0), 0, 100);
  CHECK(order == plan.BlockOrder(0, LaneId(0), 0, 100));
  CHECK(order != plan.BlockOrder(1, LaneId(0), 0, 100));
  CHECK(order != plan.BlockOrder(0, LaneId(1), 0, 100));
  CHECK(order != plan.BlockOrder(0, LaneId(0), 1, 100));
  CHECK(order != other.BlockOrder(0, LaneId(0), 0, 100));
  CHECK(order != plan.TaskBlockOrder(TaskId(0), 0, 100));
  CHECK(plan.TaskBlockOrder(TaskId(0), 0, 100) != plan.TaskBlockOrder(TaskId(1), 0, 100));
}

TEST_CASE("without shuffling lines come in file order", "[data][plan]") {
  EpochPlanOptions options;
  options.shuffle = false;
  options.batch_size = 3;
  options.buffer_lines = 4;
  const EpochPlan plan({5, 2, 6}, options);
  const auto lines = EpochLines(plan, 3);
  CHECK(std::is_sorted(lines.begin(), lines.end()));
  std::vector<uint32_t> identity(7);
  std::iota(identity.begin(), identity.end(), 0u);
  CHECK(plan.TaskBlockOrder(TaskId(1), 0, 7) == identity);
}

TEST_CASE("the permutation is pinned: a change would change every model", "[data][plan]") {
  CHECK(SeededPermutation(1, 8) == std::vector<uint32_t>{0, 3, 7, 1, 2, 6, 5, 4});
  CHECK(SeededPermutation(0, 0).empty());
  CHECK(SeededPermutation(5, 1) == std::vector<uint32_t>{0});
  EpochPlanOptions options;
  const EpochPlan plan(std::vector<uint32_t>(6, 1), options);
  CHECK(plan.TaskOrder(1) == std::vector<uint32_t>{3, 4, 2, 0, 5, 1});
  CHECK(plan.BlockOrder(1, LaneId(0), 2, 6) == std::vector<uint32_t>{3, 4, 5, 0, 2, 1});
  CHECK(plan.TaskBlockOrder(TaskId(7), 1, 6) == std::vector<uint32_t>{0, 5, 1, 4, 2, 3});
}

TEST_CASE("permutations are close to uniform", "[data][plan]") {
  // Each of 4 places should hold each of 4 values a quarter of the time: chi-square with 9 degrees
  // of freedom stays below 33.7 with probability 1 - 1e-4.
  double counts[4][4] = {};
  constexpr int kDraws = 20000;
  for (uint64_t seed = 0; seed < kDraws; ++seed) {
    const auto order = SeededPermutation(Mix64(seed), 4);
    for (int i = 0; i < 4; ++i) ++counts[i][order[i]];
  }
  double chi = 0;
  for (const auto& row : counts) {
    for (const double c : row) chi += (c - kDraws / 4.0) * (c - kDraws / 4.0) / (kDraws / 4.0);
  }
  CHECK(chi < 33.7);
}

TEST_CASE("new files begin behind what earlier runs have done", "[data][plan]") {
  EpochPlanOptions options;
  options.lanes = 2;
  options.batch_size = 4;
  const std::vector<uint32_t> lines = {9, 3, 8};
  const EpochPlan plain(lines, options);
  options.steps_before = 100;
  options.tasks_before = 50;
  const EpochPlan later(lines, options);
  for (uint64_t i = 0; i < 9; ++i) {
    const auto step = plain.PlaceOf(Step(i + 1)), step_later = later.PlaceOf(Step(i + 101));
    CHECK((step_later.epoch == step.epoch && step_later.step == step.step));
    const auto task = plain.PlaceOf(TaskId(i)), task_later = later.PlaceOf(TaskId(i + 50));
    CHECK((task_later.epoch == task.epoch && task_later.index == task.index));
  }
  CHECK(later.TaskOrder(1) == plain.TaskOrder(1));
}

TEST_CASE("tasks of later epochs have numbers of their own", "[data][plan]") {
  EpochPlanOptions options;
  options.batch_size = 4;
  const EpochPlan plan({9, 3, 8}, options);
  CHECK(plan.PlaceOf(TaskId(7)).epoch == 2);
  CHECK(plan.PlaceOf(TaskId(7)).index == 1);
  CHECK(plan.Windows(9) == 3);
  CHECK(plan.Windows(8) == 2);
  CHECK(plan.Windows(1) == 1);
}

}  // namespace strata

#include "worker/data/index/epoch_plan.h"

#include <algorithm>
#include <cassert>
#include <initializer_list>
#include <numeric>
#include <utility>

#include "proto/core/position.h"
#include "proto/job/job_plan.h"

namespace strata {
namespace {

constexpr uint64_t kGolden = 0x9e3779b97f4a7c15ull;

// What a permutation is for, so that no two purposes share one.
enum Purpose : uint64_t { kTasks = 1, kLaneBlock = 2, kTaskBlock = 3 };

uint64_t Seed(std::initializer_list<uint64_t> parts) {
  uint64_t h = 0;
  for (const uint64_t part : parts) h = Mix64((h ^ part) + kGolden);
  return h;
}

std::vector<uint32_t> Identity(uint32_t size) {
  std::vector<uint32_t> order(size);
  std::iota(order.begin(), order.end(), 0u);
  return order;
}

// a * b / c, exact while the result fits.
uint64_t MulDiv(uint64_t a, uint64_t b, uint64_t c) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(a) * b / c);
}

uint64_t CeilDiv(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }

}  // namespace

std::vector<uint32_t> SeededPermutation(uint64_t seed, uint32_t size) {
  std::vector<uint32_t> order = Identity(size);
  for (uint32_t i = size; i > 1; --i) {
    const uint64_t draw = Mix64(seed + (uint64_t{size - i} + 1) * kGolden);
    const uint32_t j = static_cast<uint32_t>((static_cast<unsigned __int128>(draw) * i) >> 64);
    std::swap(order[i - 1], order[j]);
  }
  return order;
}

EpochPlan::EpochPlan(std::vector<uint32_t> task_lines, const Options& options)
    : task_lines_(std::move(task_lines)), options_(options) {
  for (const uint32_t lines : task_lines_) lines_ += lines;
  assert(lines_ > 0 && options_.lanes > 0 && options_.batch_size > 0 && options_.buffer_lines > 0);
}

uint64_t EpochPlan::StepsPerEpoch() const {
  return strata::StepsPerEpoch(lines_, options_.lanes, options_.batch_size);
}

EpochPlan::StepPlace EpochPlan::PlaceOf(Step step) const {
  assert(step.value > options_.steps_before);
  const uint64_t steps = StepsPerEpoch();
  const uint64_t at = step.value - 1 - options_.steps_before;
  return {at / steps, at % steps};
}

LineRange EpochPlan::LaneRange(LaneId lane) const {
  assert(lane.value < options_.lanes);
  return {MulDiv(lane.value, lines_, options_.lanes),
          MulDiv(uint64_t{lane.value} + 1, lines_, options_.lanes)};
}

LineRange EpochPlan::BatchRange(uint64_t step_of_epoch, LaneId lane) const {
  const uint64_t size = LaneRange(lane).size();
  const uint64_t begin = std::min(size, step_of_epoch * options_.batch_size);
  return {begin, std::min(size, begin + options_.batch_size)};
}

std::vector<uint32_t> EpochPlan::TaskOrder(uint64_t epoch) const {
  const uint32_t count = static_cast<uint32_t>(task_lines_.size());
  if (!options_.shuffle) return Identity(count);
  return SeededPermutation(Seed({kTasks, options_.seed, epoch}), count);
}

std::vector<uint32_t> EpochPlan::BlockOrder(uint64_t epoch, LaneId lane, uint64_t block,
                                            uint32_t size) const {
  if (!options_.shuffle) return Identity(size);
  return SeededPermutation(Seed({kLaneBlock, options_.seed, epoch, lane.value, block}), size);
}

EpochPlan::TaskPlace EpochPlan::PlaceOf(TaskId task) const {
  assert(task.value >= options_.tasks_before);
  const uint64_t at = task.value - options_.tasks_before;
  return {at / tasks(), at % tasks()};
}

uint64_t EpochPlan::Windows(uint32_t task_lines) const {
  return CeilDiv(task_lines, options_.batch_size);
}

std::vector<uint32_t> EpochPlan::TaskBlockOrder(TaskId task, uint64_t block, uint32_t size) const {
  if (!options_.shuffle) return Identity(size);
  return SeededPermutation(Seed({kTaskBlock, options_.seed, task.value, block}), size);
}

}  // namespace strata

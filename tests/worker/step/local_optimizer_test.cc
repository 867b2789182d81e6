// A lane's optimizer is that of the rows on servers.
#include "worker/step/local_optimizer.h"

#include <catch2/catch.hpp>
#include <limits>
#include <random>
#include <vector>

#include "ops/optimizer.h"
#include "storage/row/layout.h"

namespace strata {
namespace {

TEST_CASE("every optimizer steps as it does where rows live", "[local_optimizer]") {
  for (const OptimizerType type :
       {OptimizerType::kSgd, OptimizerType::kAdagrad, OptimizerType::kAdam,
        OptimizerType::kMomentum, OptimizerType::kRowwiseAdagrad, OptimizerType::kFtrl,
        OptimizerType::kAdd}) {
    for (const ScheduleType schedule : {ScheduleType::kConstant, ScheduleType::kStep,
                                        ScheduleType::kCosine, ScheduleType::kPoly}) {
      INFO("type " << int(type) << ", schedule " << int(schedule));
      OptimizerSpec spec;
      spec.type = type;
      spec.learning_rate = 0.3f;
      spec.epsilon = 1e-3f;
      spec.initial_accumulator = 0.2f;
      spec.beta1 = 0.7f;
      spec.beta2 = 0.8f;
      spec.momentum = 0.6f;
      spec.nesterov = true;
      spec.beta = 0.5f;
      spec.l1 = 0.05f;
      spec.l2 = 0.04f;
      spec.weight_decay = type == OptimizerType::kFtrl ? 0.0f : 0.01f;
      spec.clip_value = 0.9f;
      spec.clip_norm = 1.5f;
      spec.schedule = {schedule, 2, 7, 0.5f, 2.0f, 0.1f};
      TableSpec table;
      table.segments = {{"embedding", 5, {}, spec}, {"weight", 1, {}, OptimizerSpec{}}};
      const storage::RowLayout layout = storage::RowLayout::For(table);
      LocalOptimizer local(table);
      REQUIRE(local.state_floats() == layout.state_floats);
      std::vector<float> row = {0.1f, -0.2f, 0.3f, 0.4f, -0.5f, 0.6f};
      std::vector<float> expected = row;
      std::vector<float> state(layout.state_floats), expected_state(layout.state_floats);
      local.InitState(state.data());
      for (const storage::SegmentLayout& s : layout.segments) {
        ops::InitState(s.optimizer, s.dim, expected_state.data() + s.state_offset - layout.dim);
      }
      std::vector<ops::ScalarSource> scalars;
      for (const storage::SegmentLayout& s : layout.segments) scalars.emplace_back(s.optimizer);
      std::mt19937 random(3);
      for (uint64_t step = 1; step <= 12; ++step) {
        std::vector<float> sums(6);
        for (float& g : sums) g = static_cast<float>(random() % 2001) / 200 - 5;
        float* rows[] = {row.data()};
        float* states[] = {state.data()};
        const LocalOptimizer::Counts counts = local.Apply(step, 3, 1, rows, states, sums.data());
        bool clipped = false;
        for (size_t k = 0; k < layout.segments.size(); ++k) {
          const storage::SegmentLayout& s = layout.segments[k];
          float* weights = expected.data() + s.weight_offset;
          float* its = expected_state.data() + s.state_offset - layout.dim;
          uint8_t outcome = 0;
          ops::ApplyRows(s.optimizer, scalars[k].At(step, 3), s.dim, 1, &weights, &its,
                         sums.data() + s.weight_offset, 6, &outcome);
          clipped |= outcome == ops::kRowClipped;
        }
        CHECK(counts.refused == 0);
        CHECK(counts.clipped == (clipped ? 1 : 0));
        REQUIRE(row == expected);
        REQUIRE(state == expected_state);
      }
    }
  }
}

TEST_CASE("a gradient that is not finite is refused and counted", "[local_optimizer]") {
  TableSpec table;
  OptimizerSpec sgd;
  sgd.learning_rate = 0x1p-8f;
  table.segments = {{"embedding", 2, {}, sgd}, {"weight", 1, {}, sgd}};
  LocalOptimizer local(table);
  std::vector<float> a = {1, 2, 3}, b = {1, 2, 3};
  float* rows[] = {a.data(), b.data()};
  const float sums[] = {0, std::numeric_limits<float>::quiet_NaN(), 128, 128, 128, 128};
  CHECK(local.Apply(1, 1, 2, rows, nullptr, sums).refused == 1);
  CHECK(a == std::vector<float>{1, 2, 2.5f});
  CHECK(b == std::vector<float>{0.5f, 1.5f, 2.5f});
}

}  // namespace
}  // namespace strata

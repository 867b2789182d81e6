#include "server/protocol/life_cycle_removal.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "proto/core/table_spec.h"

namespace strata::server {
namespace {

storage::RowLayout Layout(const RemovalRules& rules) {
  TableSpec table;
  table.segments = {{"a", 3, {}, {}}};
  table.life_cycle.removal = rules;
  return storage::RowLayout::For(table);
}

std::vector<uint8_t> Row(const storage::RowLayout& layout, float weight, uint32_t last_step,
                         uint32_t updates, float score = 0) {
  std::vector<uint8_t> row(layout.row_bytes());
  for (uint32_t d = 0; d < layout.dim; ++d) std::memcpy(&row[d * 4], &weight, 4);
  if (layout.scored) std::memcpy(&row[layout.score_offset()], &score, 4);
  const storage::RowMeta meta = {last_step, updates};
  std::memcpy(&row[layout.meta_offset()], &meta, sizeof meta);
  return row;
}

RemovalRule Judge(const RemovalRules& rules, uint64_t step, float weight, uint32_t last_step,
                  uint32_t updates, float score = 0) {
  const storage::RowLayout layout = Layout(rules);
  const Removal removal(rules, layout);
  return removal.Judge(Row(layout, weight, last_step, updates, score).data(), step);
}

TEST_CASE("every partition is looked at once in every_steps steps, and at no other",
          "[life_cycle_removal]") {
  for (const uint64_t every : {1, 3, 7, 64, 1000}) {
    RemovalRules rules;
    rules.ttl_steps = 1;
    rules.every_steps = every;
    const Removal removal(rules, Layout(rules));
    const PartitionRange range = {PartitionId(5), PartitionId(60)};
    std::map<uint32_t, int> looked;
    for (uint64_t step = 100; step < 100 + every; ++step) {
      PartitionId next;
      while (const auto due = removal.NextDue(range, next, step)) {
        REQUIRE(due->value % every == step % every);
        ++looked[due->value];
        next = due->Next();
      }
    }
    CHECK(looked.size() == range.size());
    for (const auto& [p, times] : looked) CHECK(times == 1);
  }
  const Removal none(RemovalRules{}, Layout({}));
  CHECK_FALSE(none.NextDue({PartitionId(0), PartitionId(9)}, PartitionId(0), 0).has_value());
}

TEST_CASE("ttl: idle for more than its steps; later steps count as now", "[life_cycle_removal]") {
  RemovalRules rules;
  rules.ttl_steps = 10;
  CHECK(Judge(rules, 30, 1, 20, 5) == RemovalRule::kNone);
  CHECK(Judge(rules, 31, 1, 20, 5) == RemovalRule::kTtl);
  CHECK(Judge(rules, 5, 1, 20, 5) == RemovalRule::kNone);  // from a checkpoint of a later step
  // Steps beyond 2^32: rows keep the lower half.
  CHECK(Judge(rules, (1ull << 32) + 5, 1, 0xffffffffu, 5) == RemovalRule::kNone);
  CHECK(Judge(rules, (1ull << 32) + 10, 1, 0xffffffffu, 5) == RemovalRule::kTtl);
}

TEST_CASE("a row that is idle for 2^31 steps or more does not become young",
          "[life_cycle_removal]") {
  constexpr uint64_t kHalf = uint64_t{1} << 31;
  // From another job, where it was idle for that long.
  const uint32_t oldest = 0u - static_cast<uint32_t>(kHalf - 1);
  CHECK(Removal::Idle(oldest, 0) == kHalf - 1);
  CHECK(Removal::Idle(oldest, 1) == kHalf);
  CHECK(Removal::Idle(oldest, 100) == kHalf + 99);
  CHECK(Removal::Idle(oldest, kHalf - 1) == 2 * kHalf - 2);
  // Of this job.
  CHECK(Removal::Idle(3, kHalf + 2) == kHalf - 1);
  CHECK(Removal::Idle(3, kHalf + 3) == kHalf);
  CHECK(Removal::Idle(3, 2 * kHalf) == 2 * kHalf - 3);
  CHECK(Removal::Idle(3, 2 * kHalf + 2) == 2 * kHalf - 1);
  RemovalRules rules;
  rules.ttl_steps = 10;
  CHECK(Judge(rules, 100, 1, oldest, 5) == RemovalRule::kTtl);
  CHECK(Judge(rules, kHalf + 3, 1, 3, 5) == RemovalRule::kTtl);
}

TEST_CASE("count: few updates, and none for a while", "[life_cycle_removal]") {
  RemovalRules rules;
  rules.count_below = 3;
  rules.count_idle_steps = 4;
  CHECK(Judge(rules, 14, 1, 10, 2) == RemovalRule::kCount);
  CHECK(Judge(rules, 13, 1, 10, 2) == RemovalRule::kNone);
  CHECK(Judge(rules, 14, 1, 10, 3) == RemovalRule::kNone);
}

TEST_CASE("norm: the 2-norm of the weights, exactly", "[life_cycle_removal]") {
  RemovalRules rules;
  rules.norm_below = 5;
  rules.norm_idle_steps = 1;
  const float edge = 5 / std::sqrt(3.0f);
  CHECK(Judge(rules, 2, edge * 0.999f, 1, 1) == RemovalRule::kNorm);
  CHECK(Judge(rules, 2, edge * 1.001f, 1, 1) == RemovalRule::kNone);
  CHECK(Judge(rules, 2, -edge * 0.999f, 1, 1) == RemovalRule::kNorm);
  CHECK(Judge(rules, 1, 0, 1, 1) == RemovalRule::kNone);      // touched just now
  CHECK(Judge(rules, 2, 3e38f, 1, 1) == RemovalRule::kNone);  // the sum does not overflow
  CHECK(Judge(rules, 2, 0, 1, 1) == RemovalRule::kNorm);
  // 3, 4, 0: at the threshold is not below it.
  const storage::RowLayout layout = Layout(rules);
  std::vector<uint8_t> row = Row(layout, 0, 1, 1);
  const float three_four[2] = {3, 4};
  std::memcpy(row.data(), three_four, sizeof three_four);
  CHECK(Removal(rules, layout).Judge(row.data(), 2) == RemovalRule::kNone);
  const float less = std::nextafter(4.0f, 0.0f);
  std::memcpy(&row[4], &less, sizeof less);
  CHECK(Removal(rules, layout).Judge(row.data(), 2) == RemovalRule::kNorm);
}

TEST_CASE("score: grows by counts, falls at every decay_steps-th step", "[life_cycle_removal]") {
  RemovalRules rules;
  rules.scored = true;
  rules.score_below = 1;
  rules.show_weight = 0.5f;
  rules.click_weight = 2;
  rules.decay = 0.5f;
  rules.decay_steps = 10;
  const storage::RowLayout layout = Layout(rules);
  CHECK(layout.state_floats == 1);
  const Removal removal(rules, layout);
  const auto row = Row(layout, 1, 19, 5, 8);
  CHECK(removal.Score(row.data(), 19) == 8);
  CHECK(removal.Score(row.data(), 20) == 4);
  CHECK(removal.Score(row.data(), 29) == 4);
  CHECK(removal.Score(row.data(), 50) == 0.5f);
  CHECK(removal.Score(row.data(), 1000000) == 0);
  CHECK(removal.ScoreAfter(row.data(), 20, 3, 1) == 4 + 1.5f + 2);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(removal.ScoreAfter(row.data(), 19, nan, -5) == 8);
  CHECK(removal.ScoreAfter(row.data(), 19, 1e30f, 0) == 8 + 0.5f * 16777216);
  CHECK(removal.Judge(row.data(), 49) == RemovalRule::kNone);  // 1
  CHECK(removal.Judge(row.data(), 50) == RemovalRule::kScore);
}

TEST_CASE("bytes: the lowest scores go, then the longest idle, then the first positions",
          "[life_cycle_removal]") {
  RemovalRules rules;
  rules.partition_bytes = 1;
  const size_t row_bytes = Layout(rules).row_bytes();
  rules.partition_bytes = row_bytes * 3 + row_bytes / 2;  // three rows
  rules.ttl_steps = 50;
  const storage::RowLayout layout = Layout(rules);
  const Removal removal(rules, layout);
  PartitionSweep sweep(&removal, 100);
  const std::vector<std::pair<uint64_t, uint32_t>> rows = {
      {1, 90}, {3, 80}, {5, 95}, {7, 80}, {9, 10}, {11, 80}, {13, 99}};  // position, last step
  for (const auto& [p, last] : rows) sweep.Add(Position(p), Row(layout, 1, last, 1).data());
  std::vector<std::pair<uint64_t, RemovalRule>> gone;
  for (const auto& d : sweep.Finish()) gone.push_back({d.position.value, d.rule});
  using R = RemovalRule;
  CHECK(gone == std::vector<std::pair<uint64_t, R>>{
                    {3, R::kBytes}, {7, R::kBytes}, {9, R::kTtl}, {11, R::kBytes}});
}

TEST_CASE("bytes: of rows that are alike the first positions go, and no more than must",
          "[life_cycle_removal]") {
  RemovalRules rules;
  rules.partition_bytes = 1;
  const size_t row_bytes = Layout(rules).row_bytes();
  for (const size_t room : {size_t{0}, size_t{1}, size_t{4}, size_t{5}, size_t{6}}) {
    rules.partition_bytes = std::max<size_t>(1, row_bytes * room);
    const storage::RowLayout layout = Layout(rules);
    const Removal removal(rules, layout);
    PartitionSweep sweep(&removal, 100);
    for (const uint64_t p : {10, 20, 30, 40, 50}) {
      sweep.Add(Position(p), Row(layout, 1, 80, 1).data());
    }
    std::vector<uint64_t> gone;
    for (const auto& d : sweep.Finish()) gone.push_back(d.position.value);
    const std::vector<uint64_t> all = {10, 20, 30, 40, 50};
    CHECK(gone == std::vector<uint64_t>(all.begin(), all.end() - std::min<ptrdiff_t>(5, room)));
  }
}

TEST_CASE("bytes: a score decides before idle steps do", "[life_cycle_removal]") {
  RemovalRules rules;
  rules.scored = true;
  rules.decay = 0.5f;
  rules.decay_steps = 10;
  rules.partition_bytes = Layout(rules).row_bytes();
  const storage::RowLayout layout = Layout(rules);
  const Removal removal(rules, layout);
  PartitionSweep sweep(&removal, 100);
  sweep.Add(Position(1), Row(layout, 1, 99, 1, 1).data());
  sweep.Add(Position(2), Row(layout, 1, 50, 1, 64).data());  // 2 by now
  const auto gone = sweep.Finish();
  REQUIRE(gone.size() == 1);
  CHECK(gone[0].position == Position(1));
}

}  // namespace
}  // namespace strata::server

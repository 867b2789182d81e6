#include "server/table/shard_table.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "proto/core/ids.h"
#include "proto/core/table_spec.h"
#include "server/table/memory.h"
#include "server/table/sums.h"

namespace strata::server {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// A table of a 2-float segment "a" and a 1-float segment "b".
TableSpec TableOf(const OptimizerSpec& a, const OptimizerSpec& b) {
  TableSpec spec;
  spec.id = TableId(0);
  spec.name = "features";
  spec.segments = {{"a", 2, {}, a}, {"b", 1, {}, b}};
  return spec;
}

std::unique_ptr<ShardTable> Make(const TableSpec& spec) {
  const Position first(0), last(~uint64_t{0});
  const auto memory = DivideMemory({spec}, first, last, 0, 1);
  REQUIRE(memory.ok());
  auto rows = MakeTables({spec}, first, last, *memory, nullptr);
  REQUIRE(rows.ok());
  return std::make_unique<ShardTable>(spec, 1, std::move((*rows)[0]));
}

void Apply(ShardTable& table, UpdateStep step, const std::vector<uint64_t>& positions,
           const std::vector<float>& values) {
  std::vector<Position> at;
  for (uint64_t p : positions) at.emplace_back(p);
  size_t done = 0;
  REQUIRE(table.Apply({at, values.data(), nullptr}, step, false, done).ok());
  REQUIRE(done == at.size());
}

std::vector<float> Weights(ShardTable& table, uint64_t position) {
  std::vector<float> out(3);
  REQUIRE(table.Read(std::vector<Position>{Position(position)}, out.data()).ok());
  return out;
}

TEST_CASE("the rate of a commit follows from its number", "[shard_table]") {
  OptimizerSpec a = {OptimizerType::kSgd, 1.0f};
  a.schedule = {.type = ScheduleType::kStep, .warmup_steps = 2, .decay_steps = 3};
  a.schedule.gamma = 0.5f;
  const OptimizerSpec b = {OptimizerType::kSgd, 1.0f};
  // Commit number: 1 and 2 warm up, 3 to 5 have the full rate, then it halves every three.
  const float rates[] = {0.5f, 1.0f, 1.0f, 1.0f, 1.0f, 0.5f, 0.5f, 0.5f, 0.25f};
  auto table = Make(TableOf(a, b));
  float sum = 0;
  for (uint64_t number = 1; number <= 9; ++number) {
    Apply(*table, {number, 2}, {7}, {-2, -2, -2});
    sum += rates[number - 1];
    CHECK(Weights(*table, 7) == std::vector<float>{sum, sum, static_cast<float>(number)});
  }
  // A table that is opened late, as by a replay from an image, is where the other one was.
  auto late = Make(TableOf(a, b));
  Apply(*late, {8, 2}, {7}, {-2, -2, -2});
  CHECK(Weights(*late, 7) == std::vector<float>{0.5f, 0.5f, 1.0f});
}

TEST_CASE("segments have their own optimizers, and rows count once", "[shard_table]") {
  OptimizerSpec a = {OptimizerType::kSgd, 1.0f};
  a.clip_norm = 5.0f;
  OptimizerSpec b = {OptimizerType::kSgd, 1.0f};
  b.clip_value = 1.0f;
  auto table = Make(TableOf(a, b));
  const auto counts = [&] {
    return std::pair<uint64_t, uint64_t>(table->clipped_rows(), table->refused_rows());
  };
  Apply(*table, {1, 1}, {1, 2}, {3, 4, 0.5f, 1, 1, 1});
  CHECK(counts() == std::pair<uint64_t, uint64_t>(0, 0));
  Apply(*table, {2, 1}, {1, 2, 3}, {6, 8, 9, 0, 0, 2, 0, 0, 0});  // both segments; b alone; none
  CHECK(counts() == std::pair<uint64_t, uint64_t>(2, 0));
  CHECK(Weights(*table, 1) == std::vector<float>{-6, -8, -1.5f});
  CHECK(Weights(*table, 2) == std::vector<float>{-1, -1, -2});
  // Refused in one segment and clipped in the other counts as both; refused in both bears no row.
  Apply(*table, {3, 1}, {4, 5}, {kNan, 8, 9, kNan, 0, kNan});
  CHECK(counts() == std::pair<uint64_t, uint64_t>(3, 2));
  CHECK(Weights(*table, 4) == std::vector<float>{0, 0, -1});
  CHECK(table->counters().rows == 4);
}

TEST_CASE("the first rows that are refused are known by their keys", "[shard_table]") {
  auto table = Make(TableOf({}, {}));
  const auto row = [&](uint64_t position, uint64_t refused) {
    return RefusedRowCount{TableId(0), table->spec().KeyAtPosition(Position(position)), refused};
  };
  Apply(*table, {1, 1}, {100, 101}, {1, 1, 1, kNan, kNan, kNan});
  Apply(*table, {2, 1}, {101}, {1, 1, kNan});
  using Rows = std::vector<RefusedRowCount>;
  CHECK(table->first_refused().rows() == Rows{row(101, 2)});
  for (uint64_t p = 100; p < 112; ++p) Apply(*table, {3 + p, 1}, {p}, {kNan, kNan, kNan});
  const Rows rows = table->first_refused().rows();
  REQUIRE(rows.size() == FirstRefusedRows::kMost);
  CHECK(rows[0] == row(101, 3));
  CHECK(rows[1] == row(100, 1));
  CHECK(rows[7] == row(107, 1));
  CHECK(table->refused_rows() == 14);  // all are counted
}

TEST_CASE("neighbours of one optimizer are one run: the same bits, refused together",
          "[shard_table]") {
  for (const OptimizerType type : {OptimizerType::kSgd, OptimizerType::kMomentum,
                                   OptimizerType::kAdagrad, OptimizerType::kAdd}) {
    OptimizerSpec a = {type, 0.3f};
    OptimizerSpec apart = a;
    apart.beta = 7.0f;  // means nothing to these types, and keeps the segments apart
    auto together = Make(TableOf(a, a));
    auto separate = Make(TableOf(a, apart));
    for (uint64_t number = 1; number <= 5; ++number) {
      const float x = 0.37f * static_cast<float>(number);
      Apply(*together, {number, 3}, {7}, {x, -x, x / 7});
      Apply(*separate, {number, 3}, {7}, {x, -x, x / 7});
      REQUIRE(Weights(*together, 7) == Weights(*separate, 7));
    }
    const std::vector<float> before = Weights(*together, 7);
    Apply(*together, {6, 3}, {7}, {1, 1, kNan});
    Apply(*separate, {6, 3}, {7}, {1, 1, kNan});
    CHECK(Weights(*together, 7) == before);
    CHECK(Weights(*separate, 7) != before);
    CHECK(together->refused_rows() == 1);
  }
}

TEST_CASE("a row that is only clipped is born and touched", "[shard_table]") {
  OptimizerSpec a = {OptimizerType::kSgd, 1.0f};
  a.clip_value = 0.25f;
  auto table = Make(TableOf(a, a));
  Apply(*table, {1, 1}, {9}, {1, 1, 1});
  CHECK(table->counters().rows == 1);
  CHECK(table->clipped_rows() == 1);
  CHECK(Weights(*table, 9) == std::vector<float>{-0.25f, -0.25f, -0.25f});
}

TEST_CASE("ftrl beside momentum: equations over commits", "[shard_table]") {
  OptimizerSpec ftrl = {OptimizerType::kFtrl, 0.5f};
  ftrl.beta = 1.0f;
  ftrl.l1 = 0.25f;
  ftrl.l2 = 0.5f;
  OptimizerSpec momentum = {OptimizerType::kMomentum, 0.1f};
  momentum.nesterov = true;
  auto table = Make(TableOf(ftrl, momentum));
  double z = 0, n = 0, w = 0, v = 0, x = 0;
  for (uint64_t number = 1; number <= 20; ++number) {
    const double g = std::sin(static_cast<double>(number)) + 0.1;
    const auto sum = static_cast<float>(g * 4);
    Apply(*table, {number, 4}, {3}, {sum, sum, sum});
    z += g - (std::sqrt(n + g * g) - std::sqrt(n)) / 0.5 * w;
    n += g * g;
    w = std::abs(z) <= 0.25 ? 0 : -(z - (z > 0 ? 0.25 : -0.25)) / ((1 + std::sqrt(n)) / 0.5 + 0.5);
    v = 0.9 * v + g;
    x -= 0.1 * (g + 0.9 * v);
    const std::vector<float> is = Weights(*table, 3);
    CHECK(is[0] == Approx(w).epsilon(0).margin(1e-6));
    CHECK(is[1] == is[0]);
    CHECK(is[2] == Approx(x).epsilon(0).margin(1e-6));
  }
}

TEST_CASE("sums of add are not divided", "[shard_table]") {
  const OptimizerSpec add = {OptimizerType::kAdd};
  auto table = Make(TableOf(add, add));
  Apply(*table, {1, 64}, {3}, {1, 2, 3});
  Apply(*table, {2, 0}, {3}, {1, 2, 3});
  CHECK(Weights(*table, 3) == std::vector<float>{2, 4, 6});
}

}  // namespace
}  // namespace strata::server

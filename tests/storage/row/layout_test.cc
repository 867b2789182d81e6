#include "storage/row/layout.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <vector>

#include "ops/initializer.h"
#include "ops/optimizer.h"
#include "ops/schedule.h"

namespace strata::storage {
namespace {

constexpr uint64_t kSeed = 42;

TableSpec Hashed() {
  TableSpec spec;
  spec.id = TableId(3);
  spec.segments = {{.name = "embedding",
                    .dim = 4,
                    .initializer = {InitializerType::kUniform, 0.5f},
                    .optimizer = {.type = OptimizerType::kAdam}},
                   {.name = "weight",
                    .dim = 2,
                    .initializer = {InitializerType::kNormal, 0.1f},
                    .optimizer = {.type = OptimizerType::kAdagrad, .initial_accumulator = 0.25f}},
                   {.name = "plain", .dim = 1, .optimizer = {.type = OptimizerType::kSgd}}};
  return spec;
}

TableSpec Dense() {
  TableSpec spec;
  spec.id = TableId(1);
  spec.kind = TableKind::kDense;
  spec.segments = {{.name = "dense",
                    .dim = 8,
                    .initializer = {InitializerType::kUniform, 100.0f},  // unused
                    .optimizer = {.type = OptimizerType::kSgd}}};
  spec.tensors = {{"a", 19, Position(1000), {InitializerType::kUniform, 1.0f}},
                  {"b", 8, Position(1003), {InitializerType::kNormal, 2.0f}},
                  {"c", 5, Position(uint64_t{1} << 63), {}}};
  return spec;
}

TEST_CASE("segments lie one after the other, weights first, then state", "[storage][layout]") {
  const RowLayout layout = RowLayout::For(Hashed());
  CHECK(layout.dim == 7);
  CHECK(layout.state_floats == 8 + 2 + 0);
  CHECK(layout.row_bytes() == 17 * 4 + 8);
  CHECK(layout.meta_offset() == 17 * 4);
  REQUIRE(layout.segments.size() == 3);
  CHECK(layout.segments[0].weight_offset == 0);
  CHECK(layout.segments[0].state_offset == 7);
  CHECK(layout.segments[1].weight_offset == 4);
  CHECK(layout.segments[1].state_offset == 15);
  CHECK(layout.segments[2].weight_offset == 6);
  CHECK(layout.segments[2].state_floats == 0);
}

TEST_CASE("a row's size by optimizer", "[storage][layout]") {
  const auto bytes_of = [](OptimizerType sparse, OptimizerType linear) {
    TableSpec spec;
    spec.segments = {{.name = "embedding", .dim = 16, .optimizer = {.type = sparse}},
                     {.name = "weight", .dim = 1, .optimizer = {.type = linear}}};
    return RowLayout::For(spec).row_bytes() - (17 * 4 + 8);  // of state
  };
  CHECK(bytes_of(OptimizerType::kSgd, OptimizerType::kAdd) == 0);
  CHECK(bytes_of(OptimizerType::kMomentum, OptimizerType::kMomentum) == 17 * 4);
  CHECK(bytes_of(OptimizerType::kRowwiseAdagrad, OptimizerType::kSgd) == 4);
  CHECK(bytes_of(OptimizerType::kRowwiseAdagrad, OptimizerType::kRowwiseAdagrad) == 8);
  CHECK(bytes_of(OptimizerType::kRowwiseAdagrad, OptimizerType::kFtrl) == 4 + 8);
  CHECK(bytes_of(OptimizerType::kFtrl, OptimizerType::kFtrl) == 17 * 8);
}

TEST_CASE("every parameter of an optimizer reaches its segment", "[storage][layout]") {
  TableSpec spec;
  OptimizerSpec o = {OptimizerType::kFtrl, 0.5f, 0.25f};
  o.momentum = 1;
  o.nesterov = true;
  o.beta = 2;
  o.l1 = 3;
  o.l2 = 4;
  o.weight_decay = 5;
  o.clip_value = 6;
  o.clip_norm = 7;
  o.schedule = {ScheduleType::kPoly, 8, 9, 10, 11, 12};
  spec.segments = {{.name = "embedding", .dim = 16, .optimizer = o}};
  const RowLayout layout = RowLayout::For(spec);
  const ops::OptimizerConfig& c = layout.segments[0].optimizer;
  CHECK(c.kind == ops::OptimizerKind::kFtrl);
  CHECK(c.learning_rate == 0.5f);
  CHECK(c.epsilon == 0.25f);
  CHECK(c.momentum == 1);
  CHECK(c.nesterov);
  CHECK(c.beta == 2);
  CHECK(c.l1 == 3);
  CHECK(c.l2 == 4);
  CHECK(c.weight_decay == 5);
  CHECK(c.clip_value == 6);
  CHECK(c.clip_norm == 7);
  CHECK(c.schedule.kind == ops::ScheduleKind::kPoly);
  CHECK(c.schedule.warmup_steps == 8);
  CHECK(c.schedule.decay_steps == 9);
  CHECK(c.schedule.gamma == 10);
  CHECK(c.schedule.power == 11);
  CHECK(c.schedule.final_factor == 12);
}

TEST_CASE("a hashed row is born by its segments' initializers", "[storage][layout]") {
  const TableSpec spec = Hashed();
  const RowLayout layout = RowLayout::For(spec);
  std::vector<float> row(layout.row_bytes() / 4, -1.0f);
  InitialRow(spec, layout, kSeed, Key(77), reinterpret_cast<uint8_t*>(row.data()));
  std::vector<float> expected(7);
  ops::InitialRow({ops::InitializerKind::kUniform, 0.5f}, kSeed, 3, 77, 0, 4, expected.data());
  // Elements are numbered over the whole row: segments never share random numbers.
  ops::InitialRow({ops::InitializerKind::kNormal, 0.1f}, kSeed, 3, 77, 4, 2, expected.data() + 4);
  for (size_t i = 0; i < 7; ++i) CHECK(row[i] == expected[i]);
  for (size_t i = 7; i < 15; ++i) CHECK(row[i] == 0.0f);  // adam's m and v
  CHECK(row[15] == 0.25f);
  CHECK(row[16] == 0.25f);
  RowMeta meta;
  std::memcpy(static_cast<void*>(&meta), row.data() + 17, sizeof(meta));
  CHECK(meta.last_step == 0);
  CHECK(meta.updates == 0);
  std::vector<float> weights(7);
  InitialWeights(spec, layout, kSeed, Key(77), weights.data());
  CHECK(weights == expected);
}

TEST_CASE("dense rows are cut from their tensor, and padding is zero", "[storage][layout]") {
  const TableSpec spec = Dense();
  const RowLayout layout = RowLayout::For(spec);
  std::vector<float> tensor(19);
  ops::InitialRow({ops::InitializerKind::kUniform, 1.0f}, kSeed, 1, 1000, 0, 19, tensor.data());
  tensor.resize(24, 0.0f);
  std::vector<float> row(8);
  for (uint64_t r = 0; r < 3; ++r) {
    InitialWeights(spec, layout, kSeed, Key(1000 + r), row.data());
    CHECK(row == std::vector<float>(tensor.begin() + 8 * r, tensor.begin() + 8 * (r + 1)));
  }
  std::vector<float> b(8);
  ops::InitialRow({ops::InitializerKind::kNormal, 2.0f}, kSeed, 1, 1003, 0, 8, b.data());
  InitialWeights(spec, layout, kSeed, Key(1003), row.data());
  CHECK(row == b);
  // No tensor there.
  for (uint64_t position : {uint64_t{0}, uint64_t{999}, uint64_t{1004}, ~uint64_t{0}}) {
    InitialWeights(spec, layout, kSeed, Key(position), row.data());
    CHECK(row == std::vector<float>(8, 0.0f));
  }
}

}  // namespace
}  // namespace strata::storage

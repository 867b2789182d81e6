#include "worker/models/models.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "ops/cpu_features.h"
#include "ops/parallel.h"
#include "tests/worker/models/problem.h"

namespace strata {
namespace {

using testing::Fields;
using testing::Problem;
using testing::RunPredict;
using testing::SameBits;
using testing::Shape;
using testing::StepResult;

Shape Labelled(Shape shape, const char* labels) {
  shape.labels = labels;
  shape.weighted = true;
  shape.tower_hidden = {shape.type == "shared_bottom" ? 20u : 0u};
  if (shape.type != "shared_bottom") shape.tower_hidden.clear();
  return shape;
}

Shape LargeMmoe() {
  Shape shape = Labelled({"mmoe", 20, 5, 16, {}, 500, 700, true}, "bb");
  shape.dims = {16, 8, 40};
  shape.experts = 3;
  shape.expert_hidden = {40, 20};
  shape.tower_hidden = {10};
  return shape;
}

Shape LargeDin() {
  Shape shape = {"din", 10, 3, 16, {40, 20}, 500, 700, false};
  shape.dims = {16, 8};
  shape.sequences = 2;
  shape.attention_hidden = {36};
  return shape;
}

const std::vector<Shape> kLarge = {
    {"lr", 26, 13, 0, {}, 1000, 3000, false},
    {"fm", 26, 13, 16, {}, 700, 2000, false},
    {"wide_deep", 26, 13, 16, {100, 50}, 700, 2000, false},
    {"deepfm", 26, 13, 16, {100, 50}, 700, 2000, false},
    {"dcn_v2", 26, 13, 16, {100, 50}, 300, 2000, false, Fields::kOrdinal, {}, 2, 0},
    {"dcn_v2", 10, 0, 16, {30}, 300, 500, true, Fields::kOrdinal, {}, 3, 20},
    {"dlrm", 26, 13, 16, {100, 50}, 700, 2000, false, Fields::kOrdinal, {64, 30}},
    {"dlrm", 40, 0, 33, {20}, 300, 500, true},
    Labelled({"fm", 26, 13, 16, {}, 500, 2000, false}, "bs"),
    Labelled({"deepfm", 20, 5, 16, {50}, 500, 2000, false}, "bph"),
    Labelled({"dcn_v2", 10, 5, 16, {30}, 300, 500, true, Fields::kOrdinal, {}, 2, 0}, "bs"),
    Labelled({"shared_bottom", 20, 5, 16, {60, 30}, 500, 2000, false}, "bb"),
    LargeMmoe(),
    LargeDin()};

TEST_CASE("bits depend neither on threads nor on the instruction set", "[models]") {
  std::vector<Shape> shapes = kLarge;
  for (Fields named : {Fields::kSingle, Fields::kMulti}) {
    for (Shape shape : kLarge) {
      shape.named = named;
      shape.batch /= 3;
      shape.fields = shape.fields / 3 + 1;
      shape.dim += shape.dim > 0 ? 3 : 0;
      shapes.push_back(shape);
    }
  }
  const ops::IsaLevel supported = ops::SupportedIsaLevel();
  for (size_t s = 0; s < shapes.size(); ++s) {
    INFO(Describe(shapes[s]));
    const Problem p(shapes[s], s + 100);
    StepResult first;
    for (ops::IsaLevel level : {ops::IsaLevel::kV3, supported}) {
      ops::SetActiveIsaLevel(level);
      for (size_t threads : {1, 2, 3}) {
        const auto parallel = ops::MakeParallel(threads);
        const auto model = MakeModel(p.tables);
        REQUIRE(model.ok());
        const StepResult got = Run(p, **model, parallel.get());
        if (first.predictions.empty()) first = got;
        REQUIRE(std::isfinite(got.loss));
        REQUIRE(SameBits(got, first));
        REQUIRE(SameBits(RunPredict(p, **model, parallel.get()), first.predictions));
      }
    }
    ops::SetActiveIsaLevel(supported);
  }
}

// Examples begin .. end - 1 of p, as a batch of their own.
Problem PartOf(const Problem& p, uint32_t begin, uint32_t end) {
  Problem part = p;
  Batch& batch = part.batch;
  const auto cut = [&](auto& values, size_t of_example) {
    if (values.empty()) return;
    values.erase(values.begin() + static_cast<ptrdiff_t>(end * of_example), values.end());
    values.erase(values.begin(), values.begin() + static_cast<ptrdiff_t>(begin * of_example));
  };
  const uint32_t first = batch.offsets[begin], last = batch.offsets[end];
  const auto cut_features = [&](auto& values) {
    if (values.empty()) return;
    values.erase(values.begin() + last, values.end());
    values.erase(values.begin(), values.begin() + first);
  };
  cut(batch.labels, batch.tasks);
  cut(batch.weights, 1);
  cut(batch.dense, batch.numeric);
  cut(batch.sequence_first, batch.sequences);
  cut(batch.sequence_length, batch.sequences);
  cut_features(batch.keys);
  cut_features(batch.values);
  cut_features(batch.fields);
  batch.offsets.erase(batch.offsets.begin() + end + 1, batch.offsets.end());
  batch.offsets.erase(batch.offsets.begin(), batch.offsets.begin() + begin);
  for (uint32_t& offset : batch.offsets) offset -= first;
  for (uint32_t& of_sequence : batch.sequence_first) of_sequence -= first;
  batch.size = end - begin;
  part.Route(p.unique);
  return part;
}

TEST_CASE("what a line scores does not depend on the lines beside it", "[models]") {
  const auto parallel = ops::MakeParallel(2);
  std::vector<Shape> shapes = kLarge;
  for (Shape shape : kLarge) {
    shape.named = Fields::kMulti;
    shapes.push_back(shape);
  }
  for (const Shape& shape : shapes) {
    INFO(Describe(shape));
    const Problem p(shape, 7);
    const auto model = MakeModel(p.tables);
    REQUIRE(model.ok());
    const std::vector<float> whole = RunPredict(p, **model, parallel.get());
    for (const uint32_t lines : {1u, 37u, 250u}) {
      std::vector<float> parts;
      for (uint32_t begin = 0; begin < p.batch.size && begin < 4 * lines; begin += lines) {
        const uint32_t end = std::min(p.batch.size, begin + lines);
        const std::vector<float> part = RunPredict(PartOf(p, begin, end), **model, parallel.get());
        parts.insert(parts.end(), part.begin(), part.end());
      }
      CHECK(SameBits(parts, {whole.begin(), whole.begin() + static_cast<ptrdiff_t>(parts.size())}));
    }
  }
}

TEST_CASE("a model is used for batches of any size in turn", "[models]") {
  const auto parallel = ops::MakeParallel(2);
  for (Shape shape : kLarge) {
    INFO(Describe(shape));
    shape.batch = 300;
    const Problem large(shape, 1);
    shape.named = Fields::kMulti;
    shape.batch = 130;
    const Problem pooled(shape, 4);
    shape.batch = 5;
    const Problem small(shape, 2);
    shape.batch = 0;
    const Problem empty(shape, 3);
    const auto model = MakeModel(large.tables);
    REQUIRE(model.ok());
    const StepResult a = Run(large, **model, parallel.get());
    for (const Problem* p : {&small, &pooled, &empty, &large}) {
      const StepResult got = Run(*p, **model, parallel.get());
      const auto fresh = MakeModel(p->tables);
      REQUIRE(fresh.ok());
      REQUIRE(SameBits(got, Run(*p, **fresh, parallel.get())));
      if (p == &empty) {
        REQUIRE(got.loss == 0);
        for (float g : got.rows) REQUIRE(g == 0);
        for (float g : got.tensors.back()) REQUIRE(g == 0);
      }
    }
    REQUIRE(SameBits(Run(large, **model, parallel.get()), a));
  }
}

TEST_CASE("a weight that is not a number spoils what it touches and nothing else", "[models]") {
  const auto parallel = ops::MakeParallel(2);
  for (Shape shape : kLarge) {
    shape.batch = 200;
    shape.unique = 400;
    for (Fields named : {Fields::kOrdinal, Fields::kMulti}) {
      shape.named = named;
      INFO(Describe(shape));
      Problem p(shape, 5);
      const auto model = MakeModel(p.tables);
      REQUIRE(model.ok());
      const std::vector<float> before = RunPredict(p, **model, parallel.get());
      const uint32_t bad = 17;
      for (size_t at = p.RowOf(bad); at < p.RowOf(bad + 1); ++at) p.rows[at] = NAN;
      const StepResult got = Run(p, **model, parallel.get());
      for (uint32_t i = 0; i < p.batch.size; ++i) {
        bool touched = false;
        for (uint32_t f = p.batch.offsets[i]; f < p.batch.offsets[i + 1]; ++f) {
          touched = touched || p.batch.keys[f] == bad;
        }
        const uint32_t tasks = p.tables.task_count();
        for (uint32_t at = i * tasks; !touched && at < (i + 1) * tasks; ++at) {
          REQUIRE(got.predictions[at] == before[at]);
        }
      }
    }
  }
}

TEST_CASE("tables of another model are refused", "[models]") {
  for (const Shape& shape : kLarge) {
    const Problem p(shape, 1);
    ModelTables tables = p.tables;
    if (tables.hidden.empty()) tables.type = ModelType::kDeepFm;
    tables.hidden.push_back(3);
    const auto model = MakeModel(tables);
    REQUIRE(!model.ok());
    REQUIRE(absl::IsInvalidArgument(model.status()));
  }
  ModelTables tables = Problem(kLarge[0], 1).tables;
  tables.type = static_cast<ModelType>(77);
  REQUIRE(!MakeModel(tables).ok());
}

}  // namespace
}  // namespace strata

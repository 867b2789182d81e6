// Fields with several features, against batches in which somebody pooled them before.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ops/parallel.h"
#include "tests/worker/models/problem.h"
#include "worker/data/formats/line_parser.h"
#include "worker/models/models.h"
#include "worker/step/batch.h"

namespace strata {
namespace {

using testing::Fields;
using testing::Problem;
using testing::SameBits;
using testing::Shape;
using testing::StepResult;

const std::vector<Shape> kShapes = {
    {"lr", 5, 3, 0, {}, 50, 40, true},
    {"fm", 5, 3, 9, {}, 50, 40, true},
    {"wide_deep", 5, 3, 9, {8}, 50, 40, true},
    {"deepfm", 5, 3, 9, {8}, 50, 40, true},
    {"dcn_v2", 5, 3, 9, {8}, 50, 40, true, Fields::kOrdinal, {}, 2, 3},
    {"dlrm", 5, 3, 9, {8}, 50, 40, true, Fields::kOrdinal, {7}}};

// All models, with a named field for each feature.
std::vector<Shape> AllModels() {
  std::vector<Shape> shapes = kShapes;
  Shape tower = {"shared_bottom", 5, 3, 9, {8}, 50, 40, true};
  tower.tower_hidden = {6};
  tower.labels = "bs";
  Shape mmoe = {"mmoe", 5, 3, 9, {}, 50, 40, true};
  mmoe.experts = 3;
  mmoe.expert_hidden = {7};
  mmoe.tower_hidden = {5};
  mmoe.labels = "bp";
  Shape din = {"din", 5, 3, 9, {8}, 50, 40, true};
  din.attention_hidden = {6};
  shapes.insert(shapes.end(), {tower, mmoe, din});
  din.sequences = 1;
  Shape max = kShapes[0];  // lr that pools
  max.max = true;
  shapes.insert(shapes.end(), {din, max});
  for (Shape& shape : shapes) shape.batch = 300;
  return shapes;
}

// A batch of example i alone, as a reader gives it.
Problem Alone(const Problem& p, uint32_t i) {
  Problem one = p;
  const Batch& from = p.batch;
  Batch& b = one.batch;
  const uint32_t begin = from.offsets[i], end = from.offsets[i + 1];
  const auto take = [](auto& values, size_t first, size_t last) {
    if (!values.empty()) values = {values.begin() + first, values.begin() + last};
  };
  b.size = 1;
  b.offsets = {0, end - begin};
  take(b.labels, size_t{i} * b.tasks, size_t{i + 1} * b.tasks);
  take(b.dense, size_t{i} * b.numeric, size_t{i + 1} * b.numeric);
  take(b.keys, begin, end);
  take(b.values, begin, end);
  take(b.fields, begin, end);
  take(b.sequence_first, size_t{i} * b.sequences, size_t{i + 1} * b.sequences);
  take(b.sequence_length, size_t{i} * b.sequences, size_t{i + 1} * b.sequences);
  for (uint32_t& first : b.sequence_first) first -= begin;
  LineParser::Finish(&b);
  one.Route(p.unique);
  return one;
}

// Gives the last example that has two features both in one field, so that the batch needs pooling.
void NeedPooling(Problem* p) {
  Batch& b = p->batch;
  uint32_t i = b.size - 1;
  while (b.offsets[i + 1] - b.offsets[i] < 2) --i;
  b.fields[b.offsets[i + 1] - 2] = b.fields[b.offsets[i + 1] - 1];
}

TEST_CASE("an example scores the same bits alone and among others", "[models]") {
  const auto parallel = ops::MakeParallel(2);
  for (Shape shape : AllModels()) {
    shape.named = Fields::kSingle;
    for (const bool pooled : {false, true}) {
      INFO(Describe(shape) << (shape.max ? ", max" : "") << (pooled ? ", pooled" : ""));
      Problem p(shape, 14);
      if (pooled) NeedPooling(&p);
      const auto model = MakeModel(p.tables);
      REQUIRE(model.ok());
      const std::vector<float> all = RunPredict(p, **model, parallel.get());
      std::vector<float> alone;
      int without_fields = 0;
      for (uint32_t i = 0; i < p.batch.size; ++i) {
        const Problem one = Alone(p, i);
        if (one.batch.fields.empty() && !one.batch.keys.empty()) ++without_fields;
        const std::vector<float> scores = RunPredict(one, **model, parallel.get());
        alone.insert(alone.end(), scores.begin(), scores.end());
      }
      CHECK(SameBits(alone, all));
      CHECK(without_fields > 0);
    }
  }
}

TEST_CASE("a batch gives the same bits whether it passed through pooling or not", "[models]") {
  const auto parallel = ops::MakeParallel(2);
  for (Shape shape : kShapes) {
    INFO(Describe(shape));
    shape.named = Fields::kSingle;
    const Problem direct(shape, 11);
    const auto model = MakeModel(direct.tables);
    REQUIRE(model.ok());
    const StepResult expected = Run(direct, **model, parallel.get());
    // One more example with a field of two features of a new key forces the whole batch through.
    Problem pooled = direct;
    Batch& b = pooled.batch;
    ++b.size;
    b.labels.push_back(1);
    b.dense.insert(b.dense.end(), {0.5f, -1.0f, 0.25f});
    for (int copies = 0; copies < 2; ++copies) {
      b.keys.push_back(shape.unique);
      b.values.push_back(0.75f);
      b.fields.push_back(1);
    }
    b.offsets.push_back(static_cast<uint32_t>(b.keys.size()));
    pooled.Route(shape.unique + 1);
    pooled.rows.resize(pooled.rows.size() + pooled.tables.row_dim(), 0.125f);
    StepResult got = Run(pooled, **model, parallel.get());
    got.predictions.pop_back();
    got.rows.resize(expected.rows.size());
    CHECK(SameBits(got.predictions, expected.predictions));
    CHECK(SameBits(got.rows, expected.rows));
  }
}

TEST_CASE("features of one field count as their sum", "[models]") {
  const auto parallel = ops::MakeParallel(1);
  for (Shape shape : kShapes) {
    INFO(Describe(shape));
    shape.named = Fields::kMulti;
    const Problem p(shape, 12);
    // The same batch with a row of its own for every field of every example: the sum of value times
    // row.
    Problem summed = p;
    Batch& b = summed.batch;
    const uint32_t dim = p.tables.row_dim();
    b.keys.clear();
    b.values.clear();
    b.fields.clear();
    b.offsets.assign(1, 0);
    summed.rows.clear();
    for (uint32_t i = 0; i < p.batch.size; ++i) {
      for (uint32_t f = p.batch.offsets[i]; f < p.batch.offsets[i + 1]; ++f) {
        if (f == p.batch.offsets[i] || p.batch.fields[f] != p.batch.fields[f - 1]) {
          b.keys.push_back(b.keys.size());
          b.fields.push_back(p.batch.fields[f]);
          summed.rows.resize(summed.rows.size() + dim, 0.0f);
        }
        for (uint32_t d = 0; d < dim; ++d) {
          summed.rows[summed.rows.size() - dim + d] +=
              p.batch.values[f] * p.rows[p.batch.keys[f] * dim + d];
        }
      }
      b.offsets.push_back(static_cast<uint32_t>(b.keys.size()));
    }
    summed.Route(static_cast<uint32_t>(b.keys.size()));
    const auto model = MakeModel(p.tables);
    REQUIRE(model.ok());
    const StepResult got = Run(p, **model, parallel.get());
    const StepResult expected = Run(summed, **model, parallel.get());
    CHECK(got.loss == Approx(expected.loss).epsilon(1e-5));
    for (uint32_t i = 0; i < p.batch.size; ++i) {
      CHECK(got.predictions[i] == Approx(expected.predictions[i]).epsilon(1e-4));
    }
  }
}

TEST_CASE("features of fields that the job does not know do no harm", "[models]") {
  const auto parallel = ops::MakeParallel(1);
  for (Shape shape : kShapes) {
    for (Fields named : {Fields::kSingle, Fields::kMulti}) {
      shape.named = named;
      INFO(Describe(shape));
      Problem p(shape, 13);
      for (uint32_t& field : p.batch.fields) field = field == 4 ? 4'000'000'000u : field;
      const auto model = MakeModel(p.tables);
      REQUIRE(model.ok());
      const StepResult got = Run(p, **model, parallel.get());
      REQUIRE(std::isfinite(got.loss));
      for (float g : got.rows) REQUIRE(std::isfinite(g));
    }
  }
}

}  // namespace
}  // namespace strata

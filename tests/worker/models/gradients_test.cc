// Losses and gradients of every model. The reference in double is checked against finite
// differences of its own loss, and the models, which compute in float, against the reference.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "ops/parallel.h"
#include "tests/worker/models/problem.h"
#include "tests/worker/models/products.h"
#include "tests/worker/models/reference.h"
#include "worker/models/models.h"

namespace strata {
namespace {

using testing::Fields;
using testing::Gradients;
using testing::Problem;
using testing::Reference;
using testing::RelativeError;
using testing::RunPredict;
using testing::SameBits;
using testing::Shape;
using testing::StepResult;

// Errors are relative, per tensor: the largest of its elements' over its largest element. A model's
// are within 1e-5 of finite differences: their two steps add up to that.
// Of finite differences with steps of 1e-6: about 1e-16 x loss / step, and the step squared.
constexpr double kDifferences = 2e-6;
// Of float sums of some hundred terms.
constexpr double kFloat = 8e-6;

// Several labels, of every loss, and weights of lines.
std::vector<Shape> Labelled() {
  std::vector<Shape> shapes;
  const auto add = [&shapes](Shape shape, const char* labels, bool weighted) {
    shape.labels = labels;
    shape.weighted = weighted;
    shapes.push_back(shape);
  };
  add({"lr", 4, 3, 0, {}, 37, 11, true, Fields::kMulti}, "bs", true);
  add({"lr", 4, 0, 0, {}, 50, 30, false}, "p", false);
  add({"fm", 4, 3, 5, {}, 37, 11, true}, "bh", true);
  add({"fm", 5, 0, 16, {}, 40, 9, false, Fields::kSingle}, "bpb", false);
  add({"fm", 3, 2, 6, {}, 40, 12, false, Fields::kSingle}, "s", true);
  add({"wide_deep", 4, 3, 5, {7, 6}, 37, 11, true}, "hb", false);
  add({"deepfm", 4, 3, 5, {7, 6}, 37, 11, true, Fields::kMulti}, "bs", true);
  add({"deepfm", 3, 0, 4, {9}, 33, 8, false}, "bbb", false);
  add({"deepfm", 3, 1, 4, {9}, 33, 8, false}, "b", true);
  add({"dcn_v2", 4, 3, 5, {7, 6}, 37, 11, true, Fields::kOrdinal, {}, 2, 0}, "bs", true);
  add({"dcn_v2", 5, 0, 4, {9}, 40, 9, false, Fields::kSingle, {}, 2, 2}, "pbh", false);
  add({"dlrm", 4, 3, 5, {7, 6}, 37, 11, true, Fields::kOrdinal, {6, 4}}, "bh", true);
  Shape tower = {"shared_bottom", 4, 3, 5, {8}, 37, 11, true};
  tower.tower_hidden = {6};
  add(tower, "bsp", true);
  add(tower, "", false);
  tower.named = Fields::kMulti;
  tower.tower_hidden = {};
  add(tower, "bb", false);
  // Every loss over every pooling: sums of weighted values, of which means are some, and maxima.
  for (const bool max : {false, true}) {
    for (Shape pooled : {Shape{"lr", 4, 3, 0, {}, 37, 11, true, Fields::kMulti},
                         Shape{"fm", 4, 2, 3, {}, 37, 11, true, Fields::kMulti},
                         Shape{"deepfm", 4, 2, 3, {5}, 37, 11, true, Fields::kMulti},
                         Shape{"shared_bottom", 4, 2, 3, {5}, 41, 11, true, Fields::kMulti}}) {
      pooled.max = max;
      if (pooled.type == "shared_bottom") pooled.tower_hidden = {4};
      add(pooled, "bshp", true);
    }
  }
  return shapes;
}

// Tables of several widths, and sequences.
std::vector<Shape> OfAnyWidth() {
  Shape mmoe = {"mmoe", 5, 3, 4, {}, 19, 6, true};
  mmoe.experts = 3;
  mmoe.expert_hidden = {7, 6};
  mmoe.tower_hidden = {5};
  std::vector<Shape> shapes = {mmoe};
  mmoe.labels = "bsb";
  mmoe.weighted = true;
  mmoe.dims = {3, 1, 9};
  mmoe.named = Fields::kSingle;
  shapes.push_back(mmoe);
  mmoe.labels = "bs";
  mmoe.named = Fields::kMulti;
  mmoe.max = true;
  mmoe.numeric = 0;
  mmoe.experts = 1;
  mmoe.expert_hidden = {9};
  mmoe.tower_hidden = {};
  shapes.push_back(mmoe);
  Shape din = {"din", 4, 2, 5, {8, 6}, 13, 6, false};
  shapes.push_back(din);
  din.sequences = 1;
  din.attention_hidden = {6};
  shapes.push_back(din);
  din.values = true;
  din.dims = {3, 5, 9};
  din.sequences = 3;
  din.attention_hidden = {7, 4};
  din.labels = "bh";
  din.weighted = true;
  shapes.push_back(din);
  din.hidden = {};
  din.attention_hidden = {};
  din.dims = {4, 2};
  din.sequences = 1;
  din.numeric = 0;
  din.named = Fields::kMulti;
  shapes.push_back(din);
  din.max = true;
  shapes.push_back(din);
  return shapes;
}

std::vector<Shape> Shapes() {
  std::vector<Shape> shapes = {
      {"lr", 4, 3, 0, {}, 37, 11, true},
      {"lr", 4, 0, 0, {}, 90, 30, false},
      {"fm", 4, 3, 5, {}, 37, 11, true},
      {"fm", 5, 0, 16, {}, 60, 9, false},
      {"fm", 3, 2, 21, {}, 40, 12, false},
      {"wide_deep", 4, 3, 5, {7, 6}, 37, 11, true},
      {"wide_deep", 5, 0, 16, {9}, 60, 9, false},
      {"deepfm", 4, 3, 5, {7, 6}, 37, 11, true},
      {"deepfm", 5, 2, 16, {9}, 60, 9, false},
      {"deepfm", 3, 0, 4, {}, 33, 8, true},
      {"deepfm", 3, 1, 1, {33, 17, 2}, 29, 7, true},
      {"dcn_v2", 4, 3, 5, {7, 6}, 37, 11, true, Fields::kOrdinal, {}, 2, 0},
      {"dcn_v2", 5, 0, 4, {9}, 60, 9, false, Fields::kOrdinal, {}, 3, 2},
      {"dcn_v2", 2, 1, 17, {5}, 30, 8, true, Fields::kOrdinal, {}, 1, 40},
      {"dlrm", 4, 3, 5, {7, 6}, 37, 11, true, Fields::kOrdinal, {6, 4}},
      {"dlrm", 5, 0, 16, {9}, 60, 9, false},
      {"dlrm", 17, 2, 3, {}, 25, 20, true},
      {"dlrm", 0, 3, 4, {5}, 20, 1, false, Fields::kOrdinal, {6}}};
  const size_t ordinal = shapes.size();
  for (size_t s = 0; s < ordinal; ++s) {
    for (Fields named : {Fields::kSingle, Fields::kMulti}) {
      if (shapes[s].fields == 0) continue;
      if (s % 2 == (named == Fields::kSingle ? 0 : 1) && shapes[s].fields > 3) continue;
      shapes.push_back(shapes[s]);
      shapes.back().named = named;
    }
  }
  for (size_t s = ordinal; s-- > 0;) {
    if (shapes[s].fields == 0 || !shapes[s].values) continue;
    shapes.push_back(shapes[s]);
    shapes.back().named = Fields::kMulti;
    shapes.back().max = true;
  }
  for (const Shape& labelled : Labelled()) shapes.push_back(labelled);
  for (const Shape& shape : OfAnyWidth()) shapes.push_back(shape);
  // Of every model the first with labels, whose means are stated; of lr every loss's.
  std::set<std::string> types;
  for (size_t s = 0, n = shapes.size(); s < n; ++s) {
    if (shapes[s].labels.empty() || !types.insert(shapes[s].type).second) continue;
    shapes.push_back(shapes[s]);
    shapes.back().means = true;
    if (shapes[s].type == "lr") shapes.back().labels = "bshp";
  }
  return shapes;
}

// A shape and what its weights and its batch are drawn with.
struct Drawn {
  Shape shape;
  uint64_t seed;
};

std::vector<Drawn> EveryShape() {
  // With it no tensor's gradient is a small difference of large terms in products: of such a one
  // the sum in float would be far off relative to itself.
  constexpr uint64_t kApart = 115;
  std::vector<Drawn> drawn;
  for (const Shape& shape : Shapes()) drawn.push_back({shape, drawn.size() + 1});
  for (const Shape& shape : testing::LossesAndPoolings()) {
    drawn.push_back({shape, drawn.size() + kApart});
  }
  return drawn;
}

TEST_CASE("a model that has learned nothing predicts the means that labels state", "[models]") {
  const auto parallel = ops::MakeParallel(1);
  for (const Shape& shape : Shapes()) {
    if (!shape.means) continue;
    INFO(Describe(shape));
    Problem p(shape, 1);
    std::fill(p.rows.begin(), p.rows.end(), 0.0f);
    for (auto& tensor : p.tensors) std::fill(tensor.begin(), tensor.end(), 0.0f);
    const auto model = MakeModel(p.tables);
    REQUIRE(model.ok());
    const std::vector<float> predictions = RunPredict(p, **model, parallel.get());
    CHECK(SameBits(predictions, Run(p, **model, parallel.get()).predictions));
    for (size_t i = 0; i < predictions.size(); ++i) {
      REQUIRE(predictions[i] == Approx(*p.tables.tasks[i % p.tables.task_count()].mean));
    }
  }
}

TEST_CASE("the reference's gradients are those of finite differences", "[models]") {
  for (const auto& [shape, seed] : EveryShape()) {
    const Problem p(shape, seed);
    Reference reference(p);
    const Gradients tape = reference.ByTape(), differences = reference.ByDifferences();
    INFO(Describe(shape) << ", drawn with " << seed);
    CHECK(RelativeError(tape.rows, differences.rows) <= kDifferences);
    for (size_t t = 0; t < p.tensors.size(); ++t) {
      INFO(p.tables.tensor_names[t]);
      CHECK(RelativeError(tape.tensors[t], differences.tensors[t]) <= kDifferences);
    }
  }
}

TEST_CASE("losses and gradients are those of the equations", "[models]") {
  const auto parallel = ops::MakeParallel(2);
  for (const auto& [shape, seed] : EveryShape()) {
    INFO(Describe(shape) << ", drawn with " << seed);
    const Problem p(shape, seed);
    const auto model = MakeModel(p.tables);
    REQUIRE(model.ok());
    StepResult got = Run(p, **model, parallel.get());
    if (p.tables.weighted) {  // sums are in units of the weights
      for (float& g : got.rows) g *= kWeightUnit;
      for (auto& tensor : got.tensors) {
        for (float& g : tensor) g *= kWeightUnit;
      }
    }
    const Reference reference(p);
    REQUIRE(got.loss == Approx(reference.Loss()).epsilon(1e-6));
    for (uint32_t i = 0; i < p.batch.size; ++i) {
      for (uint32_t t = 0; t < p.tables.task_count(); ++t) {
        const double expected = reference.Prediction(i, t);
        const double margin = p.tables.labelled ? 2e-5 : 0;
        REQUIRE(got.predictions[i * p.tables.task_count() + t] ==
                Approx(expected).epsilon(5e-5).margin(margin));
      }
    }
    const Gradients expected = reference.ByTape();
    CHECK(RelativeError(got.rows, expected.rows) <= kFloat);
    for (size_t t = 0; t < p.tensors.size(); ++t) {
      INFO(p.tables.tensor_names[t]);
      CHECK(RelativeError(got.tensors[t], expected.tensors[t]) <= kFloat);
    }
  }
}

}  // namespace
}  // namespace strata

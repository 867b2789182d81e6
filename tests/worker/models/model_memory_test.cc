#include "worker/models/model_memory.h"

#include <malloc.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "ops/nn/layer_memory.h"
#include "ops/parallel.h"
#include "proto/job/tables/model_tables.h"
#include "tests/heap_bytes.h"
#include "tests/worker/models/problem.h"
#include "worker/models/models.h"
#include "worker/step/batch.h"
#include "worker/step/model.h"

namespace strata {
namespace {

using testing::Fields;
using testing::HeapBytes;
using testing::Problem;
using testing::Shape;

Shape Labelled(Shape shape, const char* labels) {
  shape.labels = labels;
  shape.weighted = true;
  return shape;
}

Shape LabelledTowers(Shape shape) {
  shape.tower_hidden = {20};
  return Labelled(shape, "bb");
}

Shape MmoeShape() {
  Shape shape = LabelledTowers({"mmoe", 20, 5, 16, {}, 2000, 2000, true});
  shape.dims = {16, 8, 40};
  shape.experts = 3;
  shape.expert_hidden = {40, 20};
  return shape;
}

Shape DinShape() {
  Shape shape = {"din", 10, 3, 16, {40, 20}, 2000, 2000, false};
  shape.dims = {16, 8};
  shape.sequences = 2;
  shape.attention_hidden = {36};
  return shape;
}

// Every model of the tree, with one label and with several.
std::vector<Shape> Shapes() {
  return {{"lr", 26, 13, 0, {}, 2000, 2000, false},
          {"fm", 26, 13, 16, {}, 2000, 2000, false},
          {"wide_deep", 26, 13, 16, {100, 50}, 2000, 2000, false},
          {"deepfm", 26, 13, 16, {400, 400, 400}, 2000, 2000, false},
          {"dcn_v2", 26, 13, 16, {100, 50}, 2000, 2000, false, Fields::kOrdinal, {}, 2, 0},
          {"dcn_v2", 10, 0, 16, {30}, 2000, 500, true, Fields::kOrdinal, {}, 3, 20},
          {"dlrm", 26, 13, 16, {100, 50}, 2000, 2000, false, Fields::kOrdinal, {64, 30}},
          {"dlrm", 40, 0, 33, {20}, 2000, 500, true},
          Labelled({"lr", 26, 13, 0, {}, 2000, 2000, false}, "bs"),
          Labelled({"fm", 26, 13, 16, {}, 2000, 2000, false}, "bs"),
          Labelled({"wide_deep", 26, 13, 16, {40}, 2000, 2000, false}, "bs"),
          Labelled({"deepfm", 20, 5, 16, {50}, 2000, 2000, false}, "bph"),
          Labelled({"dcn_v2", 10, 5, 16, {30}, 2000, 500, true, Fields::kOrdinal, {}, 2, 0}, "bs"),
          Labelled({"dlrm", 10, 5, 16, {30}, 2000, 500, true, Fields::kOrdinal, {20}}, "bs"),
          LabelledTowers({"shared_bottom", 20, 5, 16, {60, 30}, 2000, 2000, false}),
          MmoeShape(),
          DinShape(),
          Labelled(DinShape(), "bs")};
}

// Those whose fields have several features, summed and pooled by max.
std::vector<Shape> PooledShapes() {
  std::vector<Shape> shapes;
  for (Shape shape : Shapes()) {
    shape.named = Fields::kMulti;
    shapes.push_back(shape);
    shape.max = true;
    shapes.push_back(shape);
  }
  return shapes;
}

// What one batch leaves in a model's buffers. The first time fills malloc's own lists of free
// blocks, which count as given out.
template <typename Use>
uint64_t TakenBy(const Problem& p, Use use) {
  uint64_t taken = 0;
  for (int time = 0; time < 2; ++time) {
    const uint64_t before = HeapBytes();
    const auto model = MakeModel(p.tables);
    REQUIRE(model.ok());
    use(**model);
    taken = HeapBytes() - before;
  }
  return taken;
}

BatchExtent ExtentOf(const Problem& p, const Shape& shape) {
  return {p.batch.size, p.batch.keys.size(), shape.named == Fields::kMulti};
}

// Told, and what was taken: no less, and little more. How long sequences are, and how many values
// are pooled by max, is told by what the batch has at most.
void Check(const Shape& shape, uint64_t told, uint64_t taken) {
  INFO("told " << told << ", taken " << taken);
  CHECK(told >= taken);
  const uint64_t more = shape.sequences > 0 ? taken * 5 / 4 : shape.max ? taken * 3 / 4 : taken / 4;
  CHECK(told <= taken + more + (uint64_t{1} << 20));
}

testing::StepResult RoomFor(const Problem& p) {
  testing::StepResult step;
  step.predictions.resize(size_t{p.batch.size} * p.tables.task_count());
  step.rows.resize(p.rows.size());
  for (const auto& t : p.tensors) step.tensors.emplace_back(t.size());
  return step;
}

void Train(const Problem& p, Model& model, ops::Parallel* parallel) {
  testing::StepResult step = RoomFor(p);
  std::vector<float*> out;
  for (auto& t : step.tensors) out.push_back(t.data());
  std::vector<const float*> tensors;
  for (const auto& t : p.tensors) tensors.push_back(t.data());
  REQUIRE(model
              .TrainStep({&p.batch, &p.routed, p.rows.data(), tensors}, {step.rows.data(), out},
                         step.predictions.data(), parallel)
              .ok());
}

TEST_CASE("a model takes no more memory than was told, and little less", "[models][memory]") {
  // Blocks with a mapping of their own would count with what lies before their alignment.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  std::vector<Shape> shapes = Shapes();
  const std::vector<Shape> pooled = PooledShapes();
  shapes.insert(shapes.end(), pooled.begin(), pooled.end());
  const auto parallel = ops::MakeParallel(1);
  std::set<ModelType> types;
  for (size_t s = 0; s < shapes.size(); ++s) {
    INFO(Describe(shapes[s]) << (shapes[s].max ? ", max" : ""));
    const Problem p(shapes[s], s);
    types.insert(p.tables.type);
    const BatchExtent extent = ExtentOf(p, shapes[s]);
    std::vector<float> predictions = RoomFor(p).predictions;
    std::vector<const float*> tensors;
    for (const auto& t : p.tensors) tensors.push_back(t.data());
    Check(shapes[s], MemoryOfModel(p.tables, extent, ops::Passes::kForwardAndBackward, 1).total(),
          TakenBy(p, [&](Model& model) { Train(p, model, parallel.get()); }));
    Check(shapes[s], MemoryOfModel(p.tables, extent, ops::Passes::kForward, 1).total(),
          TakenBy(p, [&](Model& model) {
            REQUIRE(model
                        .Predict({&p.batch, &p.routed, p.rows.data(), tensors}, predictions.data(),
                                 parallel.get())
                        .ok());
          }));
  }
  CHECK(types.size() == static_cast<size_t>(ModelType::kDin) + 1);
}

// The largest comes last, after some that are nearly as large.
TEST_CASE("batches of several sizes leave a model no more than the largest", "[models][memory]") {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  std::vector<Shape> shapes = Shapes();
  const std::vector<Shape> pooled = PooledShapes();
  shapes.insert(shapes.end(), pooled.begin(), pooled.end());
  const auto parallel = ops::MakeParallel(1);
  for (size_t s = 0; s < shapes.size(); ++s) {
    INFO(Describe(shapes[s]) << (shapes[s].max ? ", max" : ""));
    // Layers have buffers of another kind, which a batch of 2000 examples only makes slow.
    for (auto* layers : {&shapes[s].hidden, &shapes[s].expert_hidden, &shapes[s].bottom_hidden}) {
      if (!layers->empty()) *layers = {8};
    }
    Shape small = shapes[s], middle = shapes[s];
    small.batch = small.batch * 11 / 16;
    middle.batch = middle.batch * 15 / 16;
    const Problem largest(shapes[s], s), first(small, s + 1), second(middle, s + 2);
    BatchExtent extent = ExtentOf(largest, shapes[s]);
    extent.features = std::max<uint64_t>(extent.features, second.batch.keys.size());
    Check(shapes[s],
          MemoryOfModel(largest.tables, extent, ops::Passes::kForwardAndBackward, 1).total(),
          TakenBy(largest, [&](Model& model) {
            for (const Problem* p : {&first, &second, &largest}) Train(*p, model, parallel.get());
          }));
  }
}

TEST_CASE("ordinary lines are scored by 4096", "[models][memory]") {
  for (const Shape& shape : Shapes()) {
    INFO(Describe(shape));
    const BatchLimit limit = ScoredAtATime(Problem(shape, 1).tables);
    CHECK(limit.lines == 4096);
    CHECK(limit.features > 4096 * 100);
  }
}

TEST_CASE("wide lines are scored by as many as fit", "[models][memory]") {
  Shape shape = DinShape();
  Problem p(shape, 1);
  for (SequenceShape& s : p.tables.sequences) s.max_length = 1000;
  const BatchLimit limit = ScoredAtATime(p.tables);
  CHECK(limit.lines > 50);
  CHECK(limit.lines < 500);
  const uint64_t features = limit.lines * (p.tables.fields - 2 + 2 * 1000);
  const uint64_t bytes =
      MemoryOfModel(p.tables, {limit.lines, features, false}, ops::Passes::kForward, 1).batch;
  CHECK(bytes < kScoredBytes);
  CHECK(bytes > kScoredBytes / 3);
  CHECK(limit.features >= features);
  // On a device at least a batch, in whole ones: it has memory for those, and fills up others.
  const BatchLimit device = ScoredOnDevice(p.tables, 4096);
  CHECK(device.lines == 4096);
  CHECK(device.least == 4096);
  CHECK(ScoredOnDevice(p.tables, 16).lines == limit.lines / 16 * 16);
  CHECK(ScoredOnDevice(p.tables, 16).least == 16);
  CHECK(ScoredOnDevice(Problem(shape, 1).tables, 3000).lines == 3000);
  // A line is scored, whatever it takes.
  for (SequenceShape& s : p.tables.sequences) s.max_length = 1 << 24;
  CHECK(ScoredAtATime(p.tables).lines == 1);
}

}  // namespace
}  // namespace strata

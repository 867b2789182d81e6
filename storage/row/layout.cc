#include "storage/row/layout.h"

#include <algorithm>
#include <cstring>

#include "ops/optimizer_of.h"

namespace strata::storage {
namespace {

ops::InitializerConfig Config(const InitializerSpec& spec) {
  ops::InitializerConfig config;
  switch (spec.type) {
    case InitializerType::kZero:
      config.kind = ops::InitializerKind::kZero;
      break;
    case InitializerType::kUniform:
      config.kind = ops::InitializerKind::kUniform;
      break;
    case InitializerType::kNormal:
      config.kind = ops::InitializerKind::kNormal;
      break;
  }
  config.scale = spec.scale;
  return config;
}

// The tensor's own initializer; its elements are numbered from the tensor's start, under the key of
// its first row. Padding, and positions of no tensor, are zero.
void DenseWeights(const TableSpec& spec, uint32_t dim, uint64_t seed, Position position,
                  float* out) {
  std::fill_n(out, dim, 0.0f);
  auto after = std::upper_bound(spec.tensors.begin(), spec.tensors.end(), position,
                                [](Position p, const TensorSpec& t) { return p < t.first; });
  if (after == spec.tensors.begin()) return;
  const TensorSpec& tensor = *std::prev(after);
  const uint64_t row = position.value - tensor.first.value;
  if (row >= tensor.Rows(dim)) return;
  const uint64_t start = row * dim;
  const auto count = static_cast<uint32_t>(std::min<uint64_t>(dim, tensor.elements - start));
  ops::InitialRow(Config(tensor.initializer), seed, spec.id.value, tensor.first.value,
                  static_cast<uint32_t>(start), count, out);
}

// Whether updating a and b, neighbours in this order, is the same as updating each.
bool OneRun(const SegmentSpec& a, const SegmentSpec& b) {
  if (!(a.optimizer == b.optimizer) || a.optimizer.clip_norm != 0) return false;
  switch (a.optimizer.type) {
    case OptimizerType::kSgd:
    case OptimizerType::kMomentum:
    case OptimizerType::kAdagrad:
    case OptimizerType::kAdd:
      return true;
    case OptimizerType::kAdam:  // two arrays a segment
    case OptimizerType::kFtrl:
    case OptimizerType::kRowwiseAdagrad:  // one number a segment
      return false;
  }
  return false;
}

}  // namespace

RowLayout RowLayout::For(const TableSpec& spec) {
  RowLayout layout;
  layout.dim = spec.dim();
  uint32_t weight = 0;
  for (const SegmentSpec& segment : spec.segments) {
    SegmentLayout place;
    place.dim = segment.dim;
    place.weight_offset = weight;
    place.state_offset = layout.dim + layout.state_floats;
    place.initializer = Config(segment.initializer);
    place.optimizer = ops::OptimizerOf(segment.optimizer);
    place.state_floats = ops::StateFloats(place.optimizer.kind, segment.dim);
    weight += place.dim;
    layout.state_floats += place.state_floats;
    if (!layout.runs.empty() && OneRun((&segment)[-1], segment)) {
      layout.runs.back().dim += place.dim;
      layout.runs.back().state_floats += place.state_floats;
    } else {
      layout.runs.push_back(place);
    }
    layout.segments.push_back(place);
  }
  layout.scored = spec.life_cycle.scored();
  layout.state_floats += layout.scored ? 1 : 0;
  return layout;
}

void InitialWeights(const TableSpec& spec, const RowLayout& layout, uint64_t seed, Key key,
                    float* out) {
  if (spec.kind == TableKind::kDense) {
    DenseWeights(spec, layout.dim, seed, Position(key.value), out);
    return;
  }
  for (const SegmentLayout& segment : layout.segments) {
    ops::InitialRow(segment.initializer, seed, spec.id.value, key.value, segment.weight_offset,
                    segment.dim, out + segment.weight_offset);
  }
}

void InitialRow(const TableSpec& spec, const RowLayout& layout, uint64_t seed, Key key,
                uint8_t* row) {
  float* floats = reinterpret_cast<float*>(row);
  InitialWeights(spec, layout, seed, key, floats);
  for (const SegmentLayout& segment : layout.segments) {
    if (segment.state_floats == 0) continue;
    ops::InitState(segment.optimizer, segment.dim, floats + segment.state_offset);
  }
  if (layout.scored) std::memset(row + layout.score_offset(), 0, 4);
  std::memset(row + layout.meta_offset(), 0, sizeof(RowMeta));
}

}  // namespace strata::storage

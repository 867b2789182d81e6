#include "worker/step/gradient.h"

#include <utility>

#include "ops/row_sum.h"
#include "ops/sparse_rows.h"

namespace strata {

Gradient AddGradients(const TableSpec& features, const Gradient& left, const Gradient& right) {
  const uint32_t dim = features.push_dim();
  const size_t most = left.positions.size() + right.positions.size();
  std::vector<uint64_t> positions(most);
  Gradient sum;
  sum.rows.resize(most * dim);
  const size_t n =
      ops::MergeRowSums({left.positions.data(), left.rows.data(), left.positions.size()},
                        {right.positions.data(), right.rows.data(), right.positions.size()}, dim,
                        positions.data(), sum.rows.data());
  positions.resize(n);
  sum.rows.resize(n * dim);
  AddAllButRows(features, left, right, std::move(positions), &sum);
  return sum;
}

namespace {

// Those of a side that has the same positions, if one has.
SharedKeys KeysAt(const TableSpec& features, const SharedKeys& positions, const Gradient& left,
                  const Gradient& right) {
  for (const Gradient* side : {&left, &right}) {
    if (side->positions == positions) return side->keys;
  }
  std::vector<uint64_t> keys;
  keys.reserve(positions.size());
  for (const uint64_t position : positions) {
    keys.push_back(features.KeyAtPosition(Position(position)).value);
  }
  return keys;
}

}  // namespace

void AddAllButRows(const TableSpec& features, const Gradient& left, const Gradient& right,
                   SharedKeys positions, Gradient* sum) {
  sum->examples = left.examples + right.examples;
  sum->positions = std::move(positions);
  sum->keys = KeysAt(features, sum->positions, left, right);
  if (left.dense.empty() || right.dense.empty()) {
    sum->dense = left.dense.empty() ? right.dense : left.dense;
  } else {
    sum->dense.resize(left.dense.size());
    ops::AddFloats(left.dense.data(), right.dense.data(), left.dense.size(), sum->dense.data());
  }
}

namespace {

Gradient Mean(const TableSpec& features, const Gradient& sums) {
  Gradient mean = sums;
  const auto examples = static_cast<float>(sums.examples);
  const size_t dim = features.dim(), stride = features.push_dim();
  for (size_t at = 0; at < mean.rows.size(); at += stride) {
    for (size_t d = 0; d < dim; ++d) mean.rows[at + d] /= examples;
  }
  for (float& g : mean.dense) g /= examples;
  mean.examples = 1;
  return mean;
}

}  // namespace

Gradient AddMeans(const TableSpec& features, const Gradient& left, const Gradient& right) {
  Gradient sum = AddGradients(features, Mean(features, left), Mean(features, right));
  sum.examples = 1;
  return sum;
}

absl::StatusOr<GradientPtr> SumNode(
    LaneNode node, const std::function<GradientPtr(uint32_t lane)>& leaf,
    const std::function<absl::StatusOr<GradientPtr>(const Gradient& left, const Gradient& right)>&
        add) {
  if (node.IsLeaf()) return leaf(node.first);
  const auto left = SumNode(node.Left(), leaf, add);
  if (!left.ok()) return left.status();
  const auto right = SumNode(node.Right(), leaf, add);
  if (!right.ok()) return right.status();
  return add(**left, **right);
}

}  // namespace strata

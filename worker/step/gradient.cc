#include "worker/step/gradient.h"

#include <utility>

#include "ops/row_sum.h"
#include "ops/sparse_rows.h"

namespace strata {

std::vector<uint32_t> PushDims(std::span<const TableSpec> tables) {
  std::vector<uint32_t> dims;
  for (const TableSpec& table : tables) dims.push_back(table.push_dim());
  return dims;
}

std::vector<RunPair> PairRuns(std::span<const KeyRun> left, std::span<const KeyRun> right) {
  std::vector<RunPair> pairs;
  for (size_t l = 0, r = 0; l < left.size() || r < right.size();) {
    const bool from_left =
        r == right.size() || (l < left.size() && left[l].table <= right[r].table);
    const bool from_right =
        l == left.size() || (r < right.size() && right[r].table <= left[l].table);
    const uint32_t table = from_left ? left[l].table : right[r].table;
    pairs.push_back({from_left ? left[l++] : KeyRun{table, 0, 0},
                     from_right ? right[r++] : KeyRun{table, 0, 0}});
  }
  return pairs;
}

Gradient AddGradients(std::span<const TableSpec> tables, const Gradient& left,
                      const Gradient& right) {
  std::vector<uint64_t> positions(left.positions.size() + right.positions.size());
  Gradient sum;
  sum.rows.resize(left.rows.size() + right.rows.size());
  KeyRuns runs;
  size_t n = 0, at = 0, left_at = 0, right_at = 0;  // keys and floats so far
  for (const RunPair& pair : PairRuns(left.runs, right.runs)) {
    const uint32_t dim = tables[pair.left.table].push_dim();
    const KeyRun run = {pair.left.table, n,
                        ops::MergeRowSums({left.positions.data() + pair.left.first,
                                           left.rows.data() + left_at, pair.left.count},
                                          {right.positions.data() + pair.right.first,
                                           right.rows.data() + right_at, pair.right.count},
                                          dim, positions.data() + n, sum.rows.data() + at)};
    left_at += pair.left.count * dim;
    right_at += pair.right.count * dim;
    n += run.count;
    at += run.count * dim;
    runs.push_back(run);
  }
  positions.resize(n);
  sum.rows.resize(at);
  AddAllButRows(tables, left, right, std::move(positions), std::move(runs), &sum);
  return sum;
}

namespace {

// Those of a side that has the same positions, if one has.
SharedKeys KeysAt(std::span<const TableSpec> tables, const SharedKeys& positions,
                  const KeyRuns& runs, const Gradient& left, const Gradient& right) {
  for (const Gradient* side : {&left, &right}) {
    if (side->positions == positions && side->runs == runs) return side->keys;
  }
  std::vector<uint64_t> keys;
  keys.reserve(positions.size());
  for (const KeyRun& run : runs) {
    const TableSpec& table = tables[run.table];
    for (size_t i = run.first; i < run.end(); ++i) {
      keys.push_back(table.KeyAtPosition(Position(positions[i])).value);
    }
  }
  return keys;
}

}  // namespace

void AddAllButRows(std::span<const TableSpec> tables, const Gradient& left, const Gradient& right,
                   SharedKeys positions, KeyRuns runs, Gradient* sum) {
  sum->examples = left.examples + right.examples;
  sum->positions = std::move(positions);
  sum->runs = std::move(runs);
  sum->keys = KeysAt(tables, sum->positions, sum->runs, left, right);
  if (left.dense.empty() || right.dense.empty()) {
    sum->dense = left.dense.empty() ? right.dense : left.dense;
  } else {
    sum->dense.resize(left.dense.size());
    ops::AddFloats(left.dense.data(), right.dense.data(), left.dense.size(), sum->dense.data());
  }
}

namespace {

Gradient Mean(std::span<const TableSpec> tables, const Gradient& sums) {
  Gradient mean = sums;
  const auto examples = static_cast<float>(sums.examples);
  ForRuns(sums.runs, PushDims(tables), [&](const KeyRun& run, size_t begin) {
    const size_t dim = tables[run.table].dim(), stride = tables[run.table].push_dim();
    for (size_t i = 0; i < run.count; ++i) {
      for (size_t d = 0; d < dim; ++d) mean.rows[begin + i * stride + d] /= examples;
    }
  });
  for (float& g : mean.dense) g /= examples;
  mean.examples = 1;
  return mean;
}

}  // namespace

Gradient AddMeans(std::span<const TableSpec> tables, const Gradient& left, const Gradient& right) {
  Gradient sum = AddGradients(tables, Mean(tables, left), Mean(tables, right));
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

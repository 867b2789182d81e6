// Gradient sums of one node of the lane tree: what a push carries.
#ifndef STRATA_WORKER_STEP_GRADIENT_H_
#define STRATA_WORKER_STEP_GRADIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/core/lane_tree.h"
#include "proto/core/table_spec.h"
#include "worker/step/key_runs.h"
#include "worker/step/shared_keys.h"

namespace strata {

// Sums over the examples of the node's lanes. Immutable once shared.
struct Gradient {
  // What divides the sums: the examples' number, or the sum of their weights in kWeightUnit
  // (batch_weight.h).
  uint64_t examples = 0;
  SharedKeys keys;       // (n), ascending by table, then by position
  SharedKeys positions;  // (n)
  KeyRuns runs;          // of keys, by table
  // (n, push dim of the table): a row's gradient and, where rows have a score, its shows and
  // clicks.
  std::vector<float> rows;
  // Instead of rows, where servers read them on the model's device: as them, in its memory.
  std::shared_ptr<const float> rows_there;
  std::vector<float> dense;  // (dense rows, dense row dim), or empty: no contribution at all
};

// left + right: the union of the keys, added where both have one; a side without dense part passes
// the other's through unchanged. `tables` are the job's, by number. Rows are on the host.
Gradient AddGradients(std::span<const TableSpec> tables, const Gradient& left,
                      const Gradient& right);

// The sum of two gradients' means, as one that stands for one example, so that dividing by its
// examples changes nothing: what downpour accumulates. Both have examples; a mean that was made by
// this is its own mean. Shows and clicks are summed.
Gradient AddMeans(std::span<const TableSpec> tables, const Gradient& left, const Gradient& right);

// Sets all of left + right but its rows. `positions` and `runs`: of the sum.
void AddAllButRows(std::span<const TableSpec> tables, const Gradient& left, const Gradient& right,
                   SharedKeys positions, KeyRuns runs, Gradient* sum);

// Of each table that one of two lists has, ascending: its part of both, which may be empty.
struct RunPair {
  KeyRun left, right;
};
std::vector<RunPair> PairRuns(std::span<const KeyRun> left, std::span<const KeyRun> right);

// Push dims by number of the table.
std::vector<uint32_t> PushDims(std::span<const TableSpec> tables);

using GradientPtr = std::shared_ptr<const Gradient>;

// The sum of a node's lanes along the tree. `leaf(lane)` must give every lane's gradient. A single
// lane is returned as it is, without a copy. Errors: those of `add`.
absl::StatusOr<GradientPtr> SumNode(
    LaneNode node, const std::function<GradientPtr(uint32_t lane)>& leaf,
    const std::function<absl::StatusOr<GradientPtr>(const Gradient& left, const Gradient& right)>&
        add);

}  // namespace strata

#endif  // STRATA_WORKER_STEP_GRADIENT_H_

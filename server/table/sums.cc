#include "server/table/sums.h"

#include <cstdint>
#include <utility>

#include "ops/row_sum.h"
#include "ops/sparse_rows.h"
#include "proto/core/mutation.h"

namespace strata::server {
namespace {

struct Merged {
  std::vector<Position> positions;
  std::unique_ptr<float[]> values;
};

// Position has the layout of its integer (ids.h).
ops::SparseRows RowsOf(const TableSums& sums) {
  return {reinterpret_cast<const uint64_t*>(sums.positions.data()), sums.values, sums.size()};
}

}  // namespace

TableSums AddSums(const TableSums& left, const TableSums& right, uint32_t dim) {
  if (left.size() == 0) return right;
  if (right.size() == 0) return left;
  auto merged = std::make_shared<Merged>();
  const size_t most = left.size() + right.size();
  merged->positions.resize(most);
  merged->values.reset(new float[most * dim]);  // what is used of it is written by the merge
  const size_t rows = ops::MergeRowSums(RowsOf(left), RowsOf(right), dim,
                                        reinterpret_cast<uint64_t*>(merged->positions.data()),
                                        merged->values.get());
  merged->positions.resize(rows);
  TableSums sums;
  sums.positions = merged->positions;
  sums.values = merged->values.get();
  sums.owner = std::move(merged);
  return sums;
}

TableSums EvaluateRoot(const std::vector<SumInstruction>& plan,
                       const std::map<ContributionHandle, TableSums>& by_handle, uint32_t dim) {
  std::vector<TableSums> stack;
  for (const SumInstruction& instruction : plan) {
    if (instruction.kind == SumInstruction::kLoad) {
      const auto it = by_handle.find(instruction.handle);
      stack.push_back(it == by_handle.end() ? TableSums() : it->second);
      continue;
    }
    const TableSums right = std::move(stack.back());
    stack.pop_back();
    if (STRATA_MUTATION("bsp.sum_drops_right")) continue;
    stack.back() = AddSums(stack.back(), right, dim);
  }
  return stack.empty() ? TableSums() : std::move(stack.back());
}

}  // namespace strata::server

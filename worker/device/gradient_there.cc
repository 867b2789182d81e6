#include "worker/device/gradient_there.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "ops/cuda/kernel/row_block.h"
#include "worker/step/key_runs.h"

namespace strata {
namespace {

// The union of two lists, and where each of its elements is in them: in runs of one width, which
// one call of a device adds.
struct Union {
  struct Stretch {
    uint32_t dim = 0;
    size_t left = 0, right = 0;  // floats before it
    std::vector<uint32_t> left_of, right_of;
  };
  std::vector<uint64_t> positions;
  KeyRuns runs;
  std::vector<Stretch> stretches;

  Union(const Gradient& left, const Gradient& right, std::span<const uint32_t> dims) {
    size_t left_floats = 0, right_floats = 0;
    size_t left_keys = 0, right_keys = 0;    // so far, as floats
    size_t left_first = 0, right_first = 0;  // keys before the stretch
    for (const RunPair& pair : PairRuns(left.runs, right.runs)) {
      const uint32_t dim = dims[pair.left.table];
      if (stretches.empty() || stretches.back().dim != dim) {
        stretches.push_back({dim, left_floats, right_floats, {}, {}});
        left_first = left_keys;
        right_first = right_keys;
      }
      const size_t first = positions.size();
      Merge(left, right, pair, left_first, right_first);
      runs.push_back({pair.left.table, first, positions.size() - first});
      left_keys += pair.left.count;
      right_keys += pair.right.count;
      left_floats += pair.left.count * dim;
      right_floats += pair.right.count * dim;
    }
  }

 private:
  void Merge(const Gradient& left, const Gradient& right, const RunPair& pair, size_t left_first,
             size_t right_first) {
    Stretch& to = stretches.back();
    size_t l = pair.left.first, r = pair.right.first;
    const size_t l_end = pair.left.end(), r_end = pair.right.end();
    while (l < l_end || r < r_end) {
      const bool from_left = r == r_end || (l < l_end && left.positions[l] <= right.positions[r]);
      const bool from_right = l == l_end || (r < r_end && right.positions[r] <= left.positions[l]);
      positions.push_back(from_left ? left.positions[l] : right.positions[r]);
      to.left_of.push_back(from_left ? static_cast<uint32_t>(l++ - left_first) : ops::gpu::kNoRow);
      to.right_of.push_back(from_right ? static_cast<uint32_t>(r++ - right_first)
                                       : ops::gpu::kNoRow);
    }
  }
};

}  // namespace

absl::StatusOr<Gradient> AddGradientsThere(std::span<const TableSpec> tables,
                                           device::RowMemory* memory, const Gradient& left,
                                           const Gradient& right) {
  Gradient sum;
  if (left.positions.empty() || right.positions.empty()) {
    const Gradient& whole = left.positions.empty() ? right : left;
    sum.rows_there = whole.rows_there;
    AddAllButRows(tables, left, right, whole.positions, whole.runs, &sum);
    return sum;
  }
  const std::vector<uint32_t> dims = PushDims(tables);
  Union both(left, right, dims);
  auto rows = memory->Take(FloatsOf(both.runs, dims));
  if (!rows.ok()) return rows.status();
  float* out = rows->get();
  for (const Union::Stretch& stretch : both.stretches) {
    device::RowMerge merge;
    merge.left = left.rows_there.get() + stretch.left;
    merge.right = right.rows_there.get() + stretch.right;
    merge.left_of = stretch.left_of;
    merge.right_of = stretch.right_of;
    merge.dim = stretch.dim;
    merge.out = out;
    if (absl::Status s = memory->Merge(merge); !s.ok()) return s;
    out += stretch.left_of.size() * stretch.dim;
  }
  sum.rows_there = *std::move(rows);
  AddAllButRows(tables, left, right, std::move(both.positions), std::move(both.runs), &sum);
  return sum;
}

absl::StatusOr<Gradient> BringHere(std::span<const TableSpec> tables, device::RowMemory* memory,
                                   const Gradient& there) {
  Gradient here = there;
  here.rows_there = nullptr;
  here.rows.resize(FloatsOf(there.runs, PushDims(tables)));
  if (absl::Status s = memory->Download(there.rows_there.get(), here.rows.size(), here.rows.data());
      !s.ok()) {
    return s;
  }
  return here;
}

}  // namespace strata

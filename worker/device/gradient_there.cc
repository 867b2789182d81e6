#include "worker/device/gradient_there.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "ops/cuda/kernel/row_block.h"
#include "worker/step/shared_keys.h"

namespace strata {
namespace {

// The union of two ascending lists, and where each of its elements is in them.
struct Union {
  std::vector<uint64_t> positions;
  std::vector<uint32_t> left_of, right_of;

  Union(const SharedKeys& left, const SharedKeys& right) {
    size_t l = 0, r = 0;
    while (l < left.size() || r < right.size()) {
      const bool from_left = r == right.size() || (l < left.size() && left[l] <= right[r]);
      const bool from_right = l == left.size() || (r < right.size() && right[r] <= left[l]);
      positions.push_back(from_left ? left[l] : right[r]);
      left_of.push_back(from_left ? static_cast<uint32_t>(l++) : ops::gpu::kNoRow);
      right_of.push_back(from_right ? static_cast<uint32_t>(r++) : ops::gpu::kNoRow);
    }
  }
};

}  // namespace

absl::StatusOr<Gradient> AddGradientsThere(const TableSpec& features, device::RowMemory* memory,
                                           const Gradient& left, const Gradient& right) {
  Gradient sum;
  if (left.positions.empty() || right.positions.empty()) {
    const Gradient& whole = left.positions.empty() ? right : left;
    sum.rows_there = whole.rows_there;
    AddAllButRows(features, left, right, whole.positions, &sum);
    return sum;
  }
  Union both(left.positions, right.positions);
  auto rows = memory->Take(both.positions.size() * features.push_dim());
  if (!rows.ok()) return rows.status();
  device::RowMerge merge;
  merge.left = left.rows_there.get();
  merge.right = right.rows_there.get();
  merge.left_of = both.left_of;
  merge.right_of = both.right_of;
  merge.dim = features.push_dim();
  merge.out = rows->get();
  if (absl::Status s = memory->Merge(merge); !s.ok()) return s;
  sum.rows_there = *std::move(rows);
  AddAllButRows(features, left, right, std::move(both.positions), &sum);
  return sum;
}

absl::StatusOr<Gradient> BringHere(const TableSpec& features, device::RowMemory* memory,
                                   const Gradient& there) {
  Gradient here = there;
  here.rows_there = nullptr;
  here.rows.resize(there.positions.size() * features.push_dim());
  if (absl::Status s = memory->Download(there.rows_there.get(), here.rows.size(), here.rows.data());
      !s.ok()) {
    return s;
  }
  return here;
}

}  // namespace strata

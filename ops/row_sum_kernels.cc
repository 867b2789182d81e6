// Built once per instruction set: no inline std or Abseil code here (isa.bzl).
#include "ops/row_sum_kernels.h"

namespace strata::ops::STRATA_ISA {
namespace {

constexpr uint32_t kMergeBlock = 256;  // rows whose order is worked out before they are added

enum : uint8_t { kTakeLeft = 1, kTakeRight = 2 };

// out = left, right or their sum, chosen without a branch: which of them follows from hashes and
// cannot be predicted.
template <uint32_t kDim>
inline void AddRow(uint8_t take, const float* left, const float* right, uint32_t dim, float* out) {
  const uint32_t n = kDim != 0 ? kDim : dim;
  const bool both = take == (kTakeLeft | kTakeRight);
  const bool use_left = take == kTakeLeft;
  for (uint32_t d = 0; d < n; ++d) {
    const float a = left[d];
    const float b = right[d];
    const float one = use_left ? a : b;
    const float sum = a + b;
    out[d] = both ? sum : one;
  }
}

template <uint32_t kDim>
size_t Merge(const SparseRows& left, const SparseRows& right, uint32_t any_dim,
             uint64_t* __restrict out_positions, float* __restrict out_values) {
  const size_t dim = kDim != 0 ? kDim : any_dim;
  size_t l = 0, r = 0, out = 0;
  uint8_t take[kMergeBlock];
  while (l < left.n && r < right.n) {
    size_t l_row = l, r_row = r;
    uint32_t n = 0;
    for (; n < kMergeBlock && l < left.n && r < right.n; ++n) {
      const uint64_t a = left.positions[l];
      const uint64_t b = right.positions[r];
      const uint8_t from_left = a <= b ? kTakeLeft : 0;
      const uint8_t from_right = b <= a ? kTakeRight : 0;
      out_positions[out + n] = a <= b ? a : b;
      take[n] = from_left | from_right;
      l += from_left;
      r += from_right / kTakeRight;
    }
    for (uint32_t i = 0; i < n; ++i) {
      AddRow<kDim>(take[i], left.values + l_row * dim, right.values + r_row * dim, any_dim,
                   out_values + (out + i) * dim);
      l_row += take[i] & kTakeLeft;
      r_row += take[i] / kTakeRight;
    }
    out += n;
  }
  const SparseRows& rest = l < left.n ? left : right;
  const size_t at = l < left.n ? l : r;
  const size_t n = rest.n - at;
  for (size_t i = 0; i < n; ++i) out_positions[out + i] = rest.positions[at + i];
  const float* values = rest.values + at * dim;
  float* out_rest = out_values + out * dim;
  for (size_t i = 0; i < n * dim; ++i) out_rest[i] = values[i];
  return out + n;
}

}  // namespace

size_t MergeRowSums(const SparseRows& left, const SparseRows& right, uint32_t dim,
                    uint64_t* out_positions, float* out_values) {
  switch (dim) {
    case 1:
      return Merge<1>(left, right, dim, out_positions, out_values);
    case 8:
      return Merge<8>(left, right, dim, out_positions, out_values);
    case 16:
      return Merge<16>(left, right, dim, out_positions, out_values);
    case 17:
      return Merge<17>(left, right, dim, out_positions, out_values);
    default:
      return Merge<0>(left, right, dim, out_positions, out_values);
  }
}

void AddFloats(const float* left, const float* right, size_t n, float* out) {
  for (size_t i = 0; i < n; ++i) out[i] = left[i] + right[i];
}

}  // namespace strata::ops::STRATA_ISA

// Sums of gradient sums: what a node of the lane tree does with its two children (DESIGN.md section
// 6). A row that only one child has passes through with its bits: the absent one is the identity,
// not a zero (-0 + 0 would be +0).
#ifndef STRATA_OPS_ROW_SUM_H_
#define STRATA_OPS_ROW_SUM_H_

#include <cstddef>
#include <cstdint>

#include "ops/sparse_rows.h"

namespace strata::ops {

// Writes the union of both lists, ascending, and left + right where both have a row. Returns its
// size. out_positions has room for (left.n + right.n), out_values for as many rows of dim floats;
// neither overlaps the inputs. Any thread.
size_t MergeRowSums(const SparseRows& left, const SparseRows& right, uint32_t dim,
                    uint64_t* out_positions, float* out_values);

// out (n) = left + right; out may be left or right.
void AddFloats(const float* left, const float* right, size_t n, float* out);

}  // namespace strata::ops

#endif  // STRATA_OPS_ROW_SUM_H_

// How a row lies in memory, in every tier and in every file:
//   float weights[dim] | float state[state_floats] | uint32 last_step | uint32 updates
// all little-endian; row_bytes is their sum, a multiple of 4. State is that of the segments in
// order and, where the table has a score rule, one float more: the row's score at its last step.
#ifndef STRATA_STORAGE_ROW_LAYOUT_H_
#define STRATA_STORAGE_ROW_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ops/initializer.h"
#include "ops/optimizer.h"
#include "proto/core/ids.h"
#include "proto/core/table_spec.h"

namespace strata::storage {

// A segment of a row with its places resolved.
struct SegmentLayout {
  uint32_t dim = 0;
  uint32_t weight_offset = 0;  // floats from the row's start
  uint32_t state_offset = 0;   // floats from the row's start
  uint32_t state_floats = 0;
  ops::InitializerConfig initializer;
  ops::OptimizerConfig optimizer;
};

// Immutable; built once per table.
struct RowLayout {
  uint32_t dim = 0;           // weights, floats
  uint32_t state_floats = 0;  // optimizer state and score, floats
  bool scored = false;        // the last float of state is the score
  std::vector<SegmentLayout> segments;
  // What is updated, and refused, as one: neighbours with the same optimizer become one run where
  // that changes no bit of a finite update (element-wise rules whose state lies element by
  // element).
  std::vector<SegmentLayout> runs;

  static RowLayout For(const TableSpec& spec);

  size_t row_bytes() const { return (size_t{dim} + state_floats) * 4 + 8; }
  size_t meta_offset() const { return (size_t{dim} + state_floats) * 4; }
  size_t score_offset() const { return meta_offset() - 4; }  // REQUIRES: scored
};

// A row's life-cycle metadata, at meta_offset().
struct RowMeta {
  // Low 32 bits of the step (bsp) or applied-record number (async); a number by StepOf.
  uint32_t last_step = 0;
  uint32_t updates = 0;  // commits that touched the row, saturating
};
static_assert(sizeof(RowMeta) == 8);

// last_step as a number. The job counts from 0: rows that it took of another one
// (spec.model.initFrom) may have been touched before that, and say so by a step below 0.
constexpr int64_t StepOf(uint32_t last_step) { return static_cast<int32_t>(last_step); }

// Writes the row that `key` has before anything touched it: initial weights, initial state, zero
// meta. `row` has layout.row_bytes() bytes, 4-byte aligned.
void InitialRow(const TableSpec& spec, const RowLayout& layout, uint64_t seed, Key key,
                uint8_t* row);

// Only the weights: out is (layout.dim).
void InitialWeights(const TableSpec& spec, const RowLayout& layout, uint64_t seed, Key key,
                    float* out);

}  // namespace strata::storage

#endif  // STRATA_STORAGE_ROW_LAYOUT_H_

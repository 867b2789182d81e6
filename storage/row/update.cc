#include "storage/row/update.h"

#include <algorithm>

#include "storage/row/touch.h"

namespace strata::storage {
namespace {

static_assert(ops::kRowRefused == 1 && ops::kRowClipped == 2);

constexpr size_t kBlock = 512;  // rows of one ApplyRows

// Rows first .. first + n - 1, none of them null.
void UpdateBlock(const RowUpdate& update, uint8_t* const* rows, size_t first, size_t n,
                 uint8_t* outcomes) {
  float* weights[kBlock];
  float* states[kBlock];
  uint8_t of_run[kBlock];
  std::fill_n(outcomes + first, n, uint8_t{0});
  for (size_t k = 0; k < update.layout->runs.size(); ++k) {
    const SegmentLayout& run = update.layout->runs[k];
    for (size_t i = 0; i < n; ++i) {
      float* row = reinterpret_cast<float*>(rows[first + i]);
      weights[i] = row + run.weight_offset;
      states[i] = row + run.state_offset;
    }
    ops::ApplyRows(run.optimizer, update.scalars[k], run.dim, n, weights, states,
                   update.sums + first * update.stride + run.weight_offset, update.stride, of_run);
    for (size_t i = 0; i < n; ++i) outcomes[first + i] |= RowOutcomeOf(of_run[i]);
  }
}

}  // namespace

void UpdateRows(const RowUpdate& update, std::span<uint8_t* const> rows, uint8_t* outcomes) {
  for (size_t at = 0; at < rows.size();) {
    if (rows[at] == nullptr) {
      outcomes[at++] = 0;
      continue;
    }
    size_t end = at + 1;
    while (end < rows.size() && end < at + kBlock && rows[end] != nullptr) ++end;
    UpdateBlock(update, rows.data(), at, end - at, outcomes);
    at = end;
  }
}

}  // namespace strata::storage

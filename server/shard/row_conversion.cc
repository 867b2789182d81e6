#include "server/shard/row_conversion.h"

#include <algorithm>
#include <cstring>

#include "ops/optimizer.h"

namespace strata::server {
namespace {

constexpr uint32_t kMostColumns = 1u << 16;  // of what a job calls labels it has 64 at most

}  // namespace

std::optional<std::vector<std::optional<uint32_t>>> ColumnsHere(const RestoreColumns& columns,
                                                                uint32_t now) {
  if (static_cast<uint32_t>(columns.from_size()) != now || columns.saved() == 0 ||
      columns.saved() > kMostColumns) {
    return std::nullopt;
  }
  std::vector<std::optional<uint32_t>> here(columns.saved());
  for (uint32_t c = 0; c < now; ++c) {
    const uint32_t from = columns.from(static_cast<int>(c));
    if (from == 0) continue;
    if (from > columns.saved() || here[from - 1]) return std::nullopt;
    here[from - 1] = c;
  }
  return here;
}

std::optional<uint32_t> StateArrays(const storage::SegmentLayout& segment) {
  const ops::OptimizerKind kind = segment.optimizer.kind;
  if (kind == ops::OptimizerKind::kRowwiseAdagrad) return std::nullopt;
  return ops::StateFloats(kind, 1);
}

std::optional<RowConversion> RowConversion::Of(const storage::TableShape& from,
                                               const ShardTable& to, const Options& options) {
  RowConversion out(from, to);
  const bool fits = options.columns == nullptr
                        ? out.TakeAll(options.reset_state)
                        : out.TakeColumns(*options.columns, options.reset_state);
  if (!fits) return std::nullopt;
  if (options.keep_score && (!to.layout().scored || from.state_floats == 0)) return std::nullopt;
  if (options.keep_score && options.reset_state) out.TakeScore();
  return out;
}

// A score lies behind the optimizers' state.
bool RowConversion::TakeAll(bool reset_state) {
  const storage::RowLayout& layout = to_->layout();
  const uint32_t state = layout.state_floats - (layout.scored ? 1 : 0);
  if (from_.dim != layout.dim) return false;
  runs_.push_back({0, 0, layout.dim});
  if (reset_state) return true;
  if (from_.state_floats != state && from_.state_floats != state + 1) return false;
  runs_.push_back({layout.dim, layout.dim, state});
  whole_ = from_.state_floats == layout.state_floats;
  if (layout.scored && from_.state_floats > state) TakeScore();
  return true;
}

bool RowConversion::TakeColumns(const RestoreColumns& columns, bool reset_state) {
  const storage::RowLayout& layout = to_->layout();
  const storage::SegmentLayout& last = layout.segments.back();
  const auto here = ColumnsHere(columns, last.dim);
  if (!here || from_.dim != layout.dim - last.dim + columns.saved()) return false;
  const auto take = [&](uint32_t from, uint32_t to) {
    for (uint32_t c = 0; c < columns.saved(); ++c) {
      if ((*here)[c]) runs_.push_back({from + c, to + *(*here)[c], 1});
    }
  };
  runs_.push_back({0, 0, last.weight_offset});
  take(last.weight_offset, last.weight_offset);
  if (reset_state) return true;
  const uint32_t before = last.state_offset - layout.dim;  // state of the other segments
  const uint32_t state = before + ops::StateFloats(last.optimizer.kind, columns.saved());
  if (from_.state_floats != state && from_.state_floats != state + 1) return false;
  runs_.push_back({from_.dim, layout.dim, before});
  const uint32_t at = from_.dim + before;
  const auto arrays = StateArrays(last);
  const bool any = std::any_of(here->begin(), here->end(), [](const auto& c) { return c; });
  if (!arrays && any) runs_.push_back({at, last.state_offset, last.state_floats});
  for (uint32_t a = 0; a < arrays.value_or(0); ++a) {
    take(at + a * columns.saved(), last.state_offset + a * last.dim);
  }
  if (layout.scored && from_.state_floats > state) TakeScore();
  return true;
}

void RowConversion::TakeScore() {
  const auto place = [](size_t offset) { return static_cast<uint32_t>(offset / 4); };
  runs_.push_back({place(meta_offset() - 4), place(to_->layout().score_offset()), 1});
}

void RowConversion::Convert(uint64_t seed, uint64_t row_clock, Key key, const uint8_t* row,
                            uint8_t* out) const {
  Copy(seed, key, row, out);
  CountFromHere(row_clock, out);
}

void RowConversion::Copy(uint64_t seed, Key key, const uint8_t* row, uint8_t* out) const {
  const storage::RowLayout& layout = to_->layout();
  if (whole_) {
    std::memcpy(out, row, row_bytes());
    return;
  }
  storage::InitialRow(to_->spec(), layout, seed, key, out);
  for (const Run& run : runs_) {
    std::memcpy(out + size_t{run.to} * 4, row + size_t{run.from} * 4, size_t{run.floats} * 4);
  }
  std::memcpy(out + layout.meta_offset(), row + meta_offset(), sizeof(storage::RowMeta));
}

uint32_t RowConversion::LastStepHere(uint32_t last_step, uint64_t row_clock) {
  constexpr uint64_t kMost = (uint64_t{1} << 31) - 1;  // a number by StepOf
  return 0u - static_cast<uint32_t>(std::min(kMost, Removal::Idle(last_step, row_clock)));
}

void RowConversion::CountFromHere(uint64_t row_clock, uint8_t* row) const {
  const storage::RowLayout& layout = to_->layout();
  if (layout.scored) {
    const float score = to_->removal().Score(row, row_clock);
    std::memcpy(row + layout.score_offset(), &score, sizeof score);
  }
  uint8_t* const at = row + layout.meta_offset() + offsetof(storage::RowMeta, last_step);
  uint32_t last_step = 0;
  std::memcpy(&last_step, at, sizeof last_step);
  last_step = LastStepHere(last_step, row_clock);
  std::memcpy(at, &last_step, sizeof last_step);
}

}  // namespace strata::server

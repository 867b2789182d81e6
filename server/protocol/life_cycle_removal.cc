#include "server/protocol/life_cycle_removal.h"

#include <algorithm>
#include <cstring>

namespace strata::server {
namespace {

constexpr float kMostCounts = 16777216.0f;  // 2^24: float adds integers exactly up to here

// By squaring, from the lowest bit: the same bits everywhere (ops/EXACT.md, rules 3 and 4).
double Power(double base, uint64_t exponent) {
  double result = 1;
  for (; exponent > 0 && base != 0; exponent >>= 1, base *= base) {
    if (exponent & 1) result *= base;
  }
  return exponent > 0 ? 0 : result;
}

double Counts(float counts) {
  if (!(counts > 0)) return 0;  // NaN too
  return static_cast<double>(counts < kMostCounts ? counts : kMostCounts);
}

}  // namespace

std::optional<PartitionId> Removal::NextDue(PartitionRange range, PartitionId from,
                                            uint64_t step) const {
  if (!active()) return std::nullopt;
  const uint64_t every = rules_.every_steps;
  const uint64_t start = std::max(range.first, from).value;
  const uint64_t due = start + (step % every + every - start % every) % every;
  if (due > range.last.value) return std::nullopt;
  return PartitionId(static_cast<uint32_t>(due));
}

uint64_t Removal::Idle(uint32_t last_step, uint64_t step) {
  // Rows keep the lower half of a step. Below 2^31 that is the whole one, or a step before the job.
  if (step < uint64_t{1} << 31) {
    return static_cast<uint64_t>(
        std::max<int64_t>(0, static_cast<int64_t>(step) - storage::StepOf(last_step)));
  }
  return static_cast<uint32_t>(step) - last_step;
}

storage::RowMeta Removal::Meta(const uint8_t* row) const {
  storage::RowMeta meta;
  std::memcpy(&meta, row + layout_.meta_offset(), sizeof meta);
  return meta;
}

float Removal::ScoreAfter(const uint8_t* row, uint64_t step, float shows, float clicks) const {
  float stored;
  std::memcpy(&stored, row + layout_.score_offset(), sizeof stored);
  // What fell before step 0 is in the score of a row that comes from another job.
  const uint64_t last = step - std::min(step, Idle(Meta(row).last_step, step));
  double score = stored;
  if (const uint64_t falls = step / rules_.decay_steps - last / rules_.decay_steps; falls > 0) {
    score *= Power(static_cast<double>(rules_.decay), falls);
  }
  score += static_cast<double>(rules_.show_weight) * Counts(shows) +
           static_cast<double>(rules_.click_weight) * Counts(clicks);
  return static_cast<float>(score);
}

float Removal::Score(const uint8_t* row, uint64_t step) const {
  return ScoreAfter(row, step, 0, 0);
}

// In double, ascending: the square of a float is exact there.
bool Removal::NormBelow(const uint8_t* row) const {
  double sum = 0;
  for (uint32_t d = 0; d < layout_.dim; ++d) {
    float w;
    std::memcpy(&w, row + size_t{d} * 4, sizeof w);
    sum += static_cast<double>(w) * static_cast<double>(w);
  }
  const auto below = static_cast<double>(rules_.norm_below);
  return sum < below * below;
}

RemovalRule Removal::Judge(const uint8_t* row, uint64_t step) const {
  const storage::RowMeta meta = Meta(row);
  const uint64_t idle = Idle(meta.last_step, step);
  if (rules_.ttl_steps > 0 && idle > rules_.ttl_steps) return RemovalRule::kTtl;
  if (meta.updates < rules_.count_below && idle >= rules_.count_idle_steps) {
    return RemovalRule::kCount;
  }
  if (rules_.scored && Score(row, step) < rules_.score_below) return RemovalRule::kScore;
  if (rules_.norm_below > 0 && idle >= rules_.norm_idle_steps && NormBelow(row)) {
    return RemovalRule::kNorm;
  }
  return RemovalRule::kNone;
}

void PartitionSweep::Add(Position position, const uint8_t* row) {
  const RemovalRule rule = removal_->Judge(row, step_);
  if (rule != RemovalRule::kNone) {
    doomed_.push_back({position, rule});
    return;
  }
  if (removal_->rules().partition_bytes == 0) return;
  storage::RowMeta meta;
  std::memcpy(&meta, row + removal_->layout().meta_offset(), sizeof meta);
  const float score = removal_->rules().scored ? removal_->Score(row, step_) : 0.0f;
  kept_.push_back({score, Removal::Idle(meta.last_step, step_), position});
}

std::vector<PartitionSweep::Doomed> PartitionSweep::Finish() {
  const uint64_t room = removal_->rules().partition_bytes / removal_->layout().row_bytes();
  if (kept_.size() > room) {
    const auto end = kept_.begin() + static_cast<ptrdiff_t>(kept_.size() - room);
    const auto sooner = [](const Kept& a, const Kept& b) {
      if (a.score != b.score) return a.score < b.score;
      if (a.idle != b.idle) return a.idle > b.idle;
      return a.position < b.position;
    };
    std::nth_element(kept_.begin(), end, kept_.end(), sooner);
    for (auto it = kept_.begin(); it != end; ++it) {
      doomed_.push_back({it->position, RemovalRule::kBytes});
    }
    std::sort(doomed_.begin(), doomed_.end(),
              [](const Doomed& a, const Doomed& b) { return a.position < b.position; });
  }
  kept_.clear();
  return std::move(doomed_);
}

}  // namespace strata::server

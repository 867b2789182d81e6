#include "worker/metrics/stage_times.h"

namespace strata {

StageSeconds& StageSeconds::operator+=(const StageSeconds& other) {
  for (size_t i = 0; i < kStages; ++i) {
    path[i] += other.path[i];
    ahead[i] += other.ahead[i];
  }
  return *this;
}

StageSeconds StageSeconds::operator-(const StageSeconds& before) const {
  StageSeconds out;
  for (size_t i = 0; i < kStages; ++i) {
    out.path[i] = path[i] - before.path[i];
    out.ahead[i] = ahead[i] - before.ahead[i];
  }
  return out;
}

StageSeconds StageTimes::Seconds() const {
  StageSeconds out;
  for (size_t i = 0; i < kStages; ++i) {
    out.path[i] = static_cast<double>(path_[i].load(std::memory_order_relaxed)) * 1e-9;
    out.ahead[i] = static_cast<double>(ahead_[i].load(std::memory_order_relaxed)) * 1e-9;
  }
  return out;
}

Stage StageClock::Enter(Stage stage) {
  const auto now = StageTimes::Clock::now();
  times_->AddPath(stage_, now - since_);
  since_ = now;
  const Stage before = stage_;
  stage_ = stage;
  return before;
}

void StageClock::EndPasses(StageTimes::Clock::time_point blocks_done, int64_t forward,
                           int64_t backward) {
  const auto now = StageTimes::Clock::now();
  const auto blocks = blocks_done - since_;
  const int64_t both = forward + backward;
  const auto share = both > 0 ? blocks * forward / both : StageTimes::Clock::duration::zero();
  times_->AddPath(Stage::kForward, share);
  times_->AddPath(Stage::kBackward, now - since_ - share);
  since_ = now;
}

}  // namespace strata

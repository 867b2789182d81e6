// Where the time of training steps goes, by stage.
#ifndef STRATA_WORKER_METRICS_STAGE_TIMES_H_
#define STRATA_WORKER_METRICS_STAGE_TIMES_H_

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace strata {

enum class Stage : uint8_t {
  kRead = 0,  // lines parsed and hashed; on the path: waiting for them
  kRoute,     // distinct keys found, sorted and grouped
  kPrefetch,  // next keys announced
  kPull,      // weights asked for, waited for and decoded; in bsp that includes the commit before
  kForward,
  kBackward,
  kPush,   // gradients summed, encoded and sent
  kOther,  // evaluations, checkpoints' bookkeeping, reports
};
inline constexpr size_t kStages = 8;
inline constexpr std::array<const char*, kStages> kStageNames = {
    "read", "route", "prefetch", "pull", "forward", "backward", "push", "other"};

// Seconds by Stage. On the path: of threads that drive steps; what they spend adds up to their
// time. Ahead: of threads that prepare later steps meanwhile.
struct StageSeconds {
  std::array<double, kStages> path{};
  std::array<double, kStages> ahead{};
  StageSeconds& operator+=(const StageSeconds& other);
  StageSeconds operator-(const StageSeconds& before) const;  // what came since
};

// Counters that grow. Thread-safe.
class StageTimes {
 public:
  using Clock = std::chrono::steady_clock;

  void AddPath(Stage stage, Clock::duration d) { Add(path_, stage, d); }
  void AddAhead(Stage stage, Clock::duration d) { Add(ahead_, stage, d); }
  StageSeconds Seconds() const;

 private:
  using Counters = std::array<std::atomic<int64_t>, kStages>;  // nanoseconds
  static void Add(Counters& counters, Stage stage, Clock::duration d) {
    counters[static_cast<size_t>(stage)].fetch_add(
        std::chrono::duration_cast<std::chrono::nanoseconds>(d).count(), std::memory_order_relaxed);
  }

  Counters path_{};
  Counters ahead_{};
};

// The stage that a thread which drives steps is in: all of its time goes to one stage or another.
// One thread.
class StageClock {
 public:
  // `times` outlives the clock.
  explicit StageClock(StageTimes* times) : times_(times), since_(StageTimes::Clock::now()) {}
  ~StageClock() { Enter(stage_); }
  StageClock(const StageClock&) = delete;
  StageClock& operator=(const StageClock&) = delete;

  // From now on. Returns the stage before.
  Stage Enter(Stage stage);
  // A model's step just ended, and the thread was in kForward since it began. Until `blocks_done`
  // the time is shared forward : backward; the rest is the backward pass's.
  void EndPasses(StageTimes::Clock::time_point blocks_done, int64_t forward, int64_t backward);

 private:
  StageTimes* const times_;
  Stage stage_ = Stage::kOther;
  StageTimes::Clock::time_point since_;
};

// For the time of a block of code.
class InStage {
 public:
  InStage(StageClock* clock, Stage stage) : clock_(clock), before_(clock->Enter(stage)) {}
  ~InStage() { clock_->Enter(before_); }
  InStage(const InStage&) = delete;
  InStage& operator=(const InStage&) = delete;

 private:
  StageClock* const clock_;
  const Stage before_;
};

}  // namespace strata

#endif  // STRATA_WORKER_METRICS_STAGE_TIMES_H_

#include "worker/async/training_strategy.h"

#include <algorithm>
#include <vector>

#include "proto/core/mutation.h"
#include "proto/job/job_plan.h"

namespace strata {
namespace {

// Plans one batch at a time.
class Strategy : public TrainingStrategy {
 public:
  explicit Strategy(uint64_t window_batches) : window_batches_(window_batches) {}

  void BeginTask(uint64_t batches, uint64_t first_window) override {
    batches_ = batches;
    batch_ = BatchesOfWindows(first_window, window_batches_, batches);
    fresh_ = true;
    plan_.clear();
    at_ = 0;
  }

  LaneAction Next() override {
    if (at_ == plan_.size()) {
      plan_.clear();
      at_ = 0;
      if (batch_ < batches_) {
        PlanBatch(batch_, fresh_);
        ++batch_;
        fresh_ = false;
        if (batch_ == batches_) PlanEnd();
      } else {
        Add(LaneActionKind::kTaskDone, batches_, batches_);
      }
    }
    return plan_[at_++];
  }

 protected:
  // `fresh`: the lane holds nothing of this task yet.
  virtual void PlanBatch(uint64_t batch, bool fresh) = 0;
  // After the last batch, where there was one.
  virtual void PlanEnd() {}

  void Add(LaneActionKind kind, uint64_t first, uint64_t end, uint64_t window = 0) {
    plan_.push_back({kind, first, end, window});
  }
  uint64_t batches() const { return batches_; }
  // The first batch after `batch` whose number is a multiple of `n`, or the end of the task.
  uint64_t NextMultiple(uint64_t batch, uint64_t n) const {
    return std::min(batches_, batch - batch % n + n);
  }

  const uint64_t window_batches_;

 private:
  uint64_t batches_ = 0;
  uint64_t batch_ = 0;
  bool fresh_ = true;
  std::vector<LaneAction> plan_;
  size_t at_ = 0;
};

// Async is Downpour with nFetch = nPush = 1.
class Downpour : public Strategy {
 public:
  Downpour(uint64_t n_fetch, uint64_t n_push) : Strategy(n_push), n_fetch_(n_fetch) {}

 protected:
  void PlanBatch(uint64_t batch, bool fresh) override {
    const uint64_t next_pull = NextMultiple(batch, n_fetch_);
    const bool due = batch % n_fetch_ == 0 && !STRATA_MUTATION("async.pulls_once");
    if (fresh || due) Add(LaneActionKind::kPull, batch, next_pull);
    Add(LaneActionKind::kGradient, batch, batch + 1);
    if (batch + 1 < next_pull) Add(LaneActionKind::kLocalStep, batch, batch + 1);
    if (batch + 1 < NextMultiple(batch, window_batches_)) return;
    const uint64_t window = batch / window_batches_;
    Add(LaneActionKind::kPush, batch + 1, batch + 1, window);
    Add(LaneActionKind::kWindowDone, batch + 1, batch + 1, window);
  }

 private:
  const uint64_t n_fetch_;
};

class Easgd : public Strategy {
 public:
  explicit Easgd(uint64_t tau) : Strategy(tau) {}

 protected:
  void PlanBatch(uint64_t batch, bool fresh) override {
    const bool first_of_window = batch % window_batches_ == 0;
    if (first_of_window) {
      Add(LaneActionKind::kPull, batch, NextMultiple(batch, window_batches_));
    }
    Add(LaneActionKind::kGradient, batch, batch + 1);
    if (first_of_window && !fresh) AddExchange(batch, batch / window_batches_ - 1);
    Add(LaneActionKind::kLocalStep, batch, batch + 1);
  }
  void PlanEnd() override {
    Add(LaneActionKind::kPull, batches(), batches());
    AddExchange(batches(), (batches() - 1) / window_batches_);
  }

 private:
  void AddExchange(uint64_t batch, uint64_t window) {
    Add(LaneActionKind::kExchange, batch, batch, window);
    Add(LaneActionKind::kWindowDone, batch, batch, window);
  }
};

}  // namespace

std::unique_ptr<TrainingStrategy> MakeTrainingStrategy(const TrainingSpec& training) {
  if (training.mode() == "easgd") return std::make_unique<Easgd>(BatchesPerWindow(training));
  const uint64_t n_fetch = training.mode() == "downpour" ? training.n_fetch() : 1;
  return std::make_unique<Downpour>(n_fetch, BatchesPerWindow(training));
}

}  // namespace strata

#include "worker/bsp/lane_preparer.h"

#include <algorithm>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "ops/mxcsr.h"
#include "worker/step/router.h"

namespace strata {
namespace {

using Result = absl::StatusOr<std::shared_ptr<const PreparedLane>>;

class ThreadedPreparer : public LanePreparer {
 public:
  explicit ThreadedPreparer(const Options& options) : options_(options) {
    for (uint32_t i = 0; i < std::max(1u, options.threads); ++i) {
      threads_.emplace_back([this] { Work(); });
    }
  }

  ~ThreadedPreparer() override {
    {
      absl::MutexLock lock(&mu_);
      stop_ = true;
    }
    for (std::thread& t : threads_) t.join();
  }

  Result Get(Step step, uint32_t lane) override {
    absl::MutexLock lock(&mu_);
    Lane& l = lanes_[lane];
    l.entries.erase(l.entries.begin(), l.entries.lower_bound(step));
    // A jump ahead or back: what lies beyond the depth is of no use.
    const Step end(std::min(options_.last_step.value, step.value + options_.depth) + 1);
    l.entries.erase(l.entries.lower_bound(end), l.entries.end());
    for (Step s = step; s < end; s = s.Next()) l.entries.try_emplace(s);
    const auto ready = [&l, step]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return l.entries.at(step).result.has_value();
    };
    mu_.Await(absl::Condition(&ready));
    return *l.entries.at(step).result;
  }

  bool Ready(Step step, uint32_t lane) override {
    absl::MutexLock lock(&mu_);
    const auto it = lanes_.find(lane);
    if (it == lanes_.end()) return false;
    const auto entry = it->second.entries.find(step);
    return entry != it->second.entries.end() && entry->second.result.has_value();
  }

  void Forget(uint32_t lane) override {
    absl::MutexLock lock(&mu_);
    auto it = lanes_.find(lane);
    if (it != lanes_.end()) it->second.entries.clear();
  }

 private:
  struct Entry {
    bool taken = false;
    std::optional<Result> result;
  };
  struct Lane {
    std::map<Step, Entry> entries;
    bool busy = false;  // being read: a source is read by one thread per lane at a time
  };

  // The oldest wanted batch of a lane that nobody is reading.
  std::optional<std::pair<Step, uint32_t>> Pick() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    std::optional<std::pair<Step, uint32_t>> best;
    for (auto& [number, lane] : lanes_) {
      if (lane.busy) continue;
      for (auto& [step, entry] : lane.entries) {
        if (entry.taken) continue;
        if (!best || step < best->first) best = {step, number};
        break;
      }
    }
    return best;
  }

  void Work() {
    ops::RestoreExactFloatState();
    Router router;
    while (true) {
      std::optional<std::pair<Step, uint32_t>> job;
      {
        absl::MutexLock lock(&mu_);
        const auto some = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
          return stop_ || (job = Pick()).has_value();
        };
        mu_.Await(absl::Condition(&some));
        if (stop_) return;
        lanes_[job->second].busy = true;
        lanes_[job->second].entries[job->first].taken = true;
      }
      Result result = Prepare(router, job->first, job->second);
      absl::MutexLock lock(&mu_);
      Lane& lane = lanes_[job->second];
      auto entry = lane.entries.find(job->first);
      if (entry != lane.entries.end()) {
        entry->second.taken = true;
        entry->second.result = std::move(result);
      }
    }
  }

  Result Prepare(Router& router, Step step, uint32_t lane) {
    auto prepared = std::make_shared<PreparedLane>();
    const auto from = StageTimes::Clock::now();
    const absl::Status read = options_.source->Read(step, LaneId(lane), &prepared->batch);
    {  // the lane's next batch may be read while this one is routed
      absl::MutexLock lock(&mu_);
      lanes_[lane].busy = false;
    }
    if (!read.ok()) return read;
    const auto between = StageTimes::Clock::now();
    router.Route(options_.tables, prepared->batch, &prepared->routed);
    if (options_.times != nullptr) {
      options_.times->AddAhead(Stage::kRead, between - from);
      options_.times->AddAhead(Stage::kRoute, StageTimes::Clock::now() - between);
    }
    return std::shared_ptr<const PreparedLane>(std::move(prepared));
  }

  const Options options_;
  absl::Mutex mu_;
  std::map<uint32_t, Lane> lanes_ ABSL_GUARDED_BY(mu_);
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<LanePreparer> LanePreparer::Make(const Options& options) {
  return std::make_unique<ThreadedPreparer>(options);
}

}  // namespace strata

#include "tools/gpu/dlrm/training.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ops/mxcsr.h"
#include "proto/core/ids.h"
#include "proto/runtime/credentials/caller.h"
#include "proto/strata/control.pb.h"
#include "worker/data/reading/data_access.h"
#include "worker/metrics/training_stats.h"
#include "worker/training_session.h"

namespace strata::gpu_check {
namespace {

using Clock = std::chrono::steady_clock;

// A tenth of a per mille of a window of a second.
constexpr auto kLookEvery = std::chrono::microseconds(100);

double SecondsOf(Clock::duration d) { return std::chrono::duration<double>(d).count(); }

// What there was at the end of a step.
struct Mark {
  Clock::time_point at;
  uint64_t examples = 0;
  StageSeconds stages;
  DlrmCounters counters;
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// One session, and what is seen of it from outside.
class Training {
 public:
  explicit Training(const DlrmTrainingOptions& options)
      : o_(options), before_(options.servers->counters()), first_(before_.clock + 1) {}

  absl::StatusOr<DlrmTraining> Run() {
    // A window may begin a step late, and the last one is to end before training does.
    const uint32_t warm = std::max(o_.warm_steps, o_.most_warm_steps);
    const uint32_t steps = warm + o_.windows * (o_.window_steps + 1) + 1;
    last_ = first_ + steps - 1;
    const auto data = MakeDlrmData(o_.data, first_, steps, o_.parallel);
    TrainingSessionOptions session;
    session.directive = Directive();
    session.member = SessionId(o_.session);
    session.sequences = &sequences_;
    session.transport = o_.servers->transport();
    session.caller = Caller::Nobody();  // this process is all there is
    session.data = data.get();
    session.device = o_.device;
    session.stats = &stats_;
    auto made = TrainingSession::Make(session);
    if (!made.ok()) return made.status();
    (*made)->Update(session.directive);
    std::atomic<bool> ended{false};
    absl::Status status;
    std::thread thread([&] {
      ops::RestoreExactFloatState();
      status = (*made)->Run();
      ended = true;
    });
    const Mark begin = Now();
    const bool stopped = Watch(ended);
    if (stopped) (*made)->Stop();
    thread.join();
    if (!status.ok() && !(stopped && absl::IsCancelled(status))) return status;
    // Over before anybody looked twice: nothing that is worth measuring.
    if (status.ok() && marks_.size() < 2) marks_ = {begin, Now()};
    return Result(/*cut_short=*/!status.ok());
  }

 private:
  WorkerJobDirective Directive() const {
    WorkerJobDirective directive;
    o_.servers->Describe(&directive);
    *directive.mutable_spec() = o_.job;
    *directive.mutable_train_index() = DlrmIndex(o_.data, last_ * o_.data.batch);
    directive.add_lanes(0);
    return directive;
  }

  Mark Now() const {
    return {Clock::now(), stats_.examples(), stats_.stages().Seconds(), o_.servers->counters()};
  }

  // Notes the windows' ends, until training has ended, or the time is up: true.
  bool Watch(const std::atomic<bool>& ended) {
    const Clock::time_point begin = Clock::now();
    const uint64_t batch = o_.data.batch;
    uint64_t next = o_.warm_steps * batch;
    std::optional<Clock::time_point> first;  // when the first step was over
    while (!ended) {
      const uint64_t examples = stats_.examples();
      if (!first && examples > 0) first = Clock::now();
      const bool warm = !marks_.empty() || examples >= o_.most_warm_steps * batch ||
                        (first && SecondsOf(Clock::now() - *first) * 1e3 >= o_.warm_ms);
      if (warm && examples >= next && marks_.size() <= o_.windows) {
        marks_.push_back(Now());
        next = marks_.back().examples + o_.window_steps * batch;
      }
      if (SecondsOf(Clock::now() - begin) > o_.most_seconds && marks_.size() <= o_.windows) {
        return true;
      }
      std::this_thread::sleep_for(kLookEvery);
    }
    return false;
  }

  absl::StatusOr<DlrmTraining> Result(bool cut_short) const {
    DlrmTraining result;
    result.cut_short = cut_short;
    const DlrmCounters now = o_.servers->counters();
    result.steps = now.clock + 1 - first_;
    const auto steps = static_cast<double>(std::max<uint64_t>(1, result.steps));
    result.message_bytes = static_cast<double>(now.message_bytes - before_.message_bytes) / steps;
    result.rows_there = static_cast<double>(stats_.rows_there()) / steps;
    if (!cut_short && result.steps != last_ + 1 - first_) {
      return absl::InternalError(absl::StrCat("after ", last_ + 1 - first_,
                                              " steps the servers have committed ", result.steps));
    }
    if (marks_.size() < 2) {
      return absl::DeadlineExceededError(
          absl::StrCat(result.steps, " steps in ", o_.most_seconds, " s: no window of ",
                       o_.window_steps, " steps after ", o_.warm_steps, " others was over"));
    }
    const auto quality = stats_.RecentQuality();
    result.loss = quality ? quality->loss : std::nan("");
    if (!std::isfinite(result.loss)) {
      return absl::InternalError(
          absl::StrCat("after ", result.steps, " steps the loss is ", result.loss));
    }
    std::vector<double> ms;
    for (size_t i = 1; i < marks_.size(); ++i) {
      ms.push_back(SecondsOf(marks_[i].at - marks_[i - 1].at) * 1e3 / Steps(i - 1, i));
    }
    result.warm_steps = marks_.front().examples / o_.data.batch;
    result.windows = static_cast<uint32_t>(ms.size());
    result.step_ms = Median(ms);
    Divide(&result);
    return result;
  }

  double Steps(size_t from, size_t to) const {
    return static_cast<double>(marks_[to].examples - marks_[from].examples) / o_.data.batch;
  }

  void Divide(DlrmTraining* result) const {
    const Mark& from = marks_.front();
    const Mark& to = marks_.back();
    const double steps = Steps(0, marks_.size() - 1);
    result->stages = to.stages - from.stages;
    for (size_t i = 0; i < kStages; ++i) {
      result->stages.path[i] /= steps;
      result->stages.ahead[i] /= steps;
    }
    // Each takes an empty slot, or that of a row that leaves.
    result->moved_up =
        (static_cast<double>(to.counters.hbm_evicted - from.counters.hbm_evicted) +
         static_cast<double>(to.counters.hbm_rows) - static_cast<double>(from.counters.hbm_rows)) /
        steps;
  }

  const DlrmTrainingOptions& o_;
  const DlrmCounters before_;
  const uint64_t first_;
  uint64_t last_ = 0;
  TrainingStats stats_;
  SequenceCounter sequences_;
  std::vector<Mark> marks_;
};

}  // namespace

absl::StatusOr<DlrmTraining> TrainDlrm(const DlrmTrainingOptions& options) {
  Training training(options);
  return training.Run();
}

}  // namespace strata::gpu_check

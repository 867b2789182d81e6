// Which workers of a job are much slower than the others, by what they say of themselves.
#ifndef STRATA_SCHEDULER_JOB_CONCERNS_SLOW_WORKERS_H_
#define STRATA_SCHEDULER_JOB_CONCERNS_SLOW_WORKERS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace strata::scheduler {

// A pure state machine: one thread, no clock. A worker's speed is the time that it works on an
// example; what it waits for others, or for servers, does not count. So lanes that are dealt
// unevenly make nobody slow, and in bsp, where all wait for the slowest, only that one is.
//
//   slow.OnReport("w1", report.examples(), report.working_seconds(), now);
//   for (const SlowWorkers::Slow& s : slow.Find(now)) ...
class SlowWorkers {
 public:
  // A speed is of the last kSpan, and of at least half of that.
  static constexpr absl::Duration kSpan = absl::Seconds(20);
  // So many times the time of the others' median is slow.
  static constexpr double kTimes = 2;

  struct Slow {
    std::string name;
    double seconds = 0;  // for each example
    double others = 0;   // the median of the others
  };

  // Counters since the worker's process, or its generation, began; they begin anew where one falls.
  void OnReport(const std::string& name, uint64_t examples, double working_seconds, absl::Time now);
  void Forget(const std::string& name) { speeds_.erase(name); }
  void Clear() { speeds_.clear(); }
  // By name. None where fewer than two workers have a speed.
  std::vector<Slow> Find(absl::Time now) const;

 private:
  struct Mark {
    absl::Time at;
    uint64_t examples = 0;
    double seconds = 0;
  };
  // Ascending by time; those before the last kSpan but one are dropped.
  std::map<std::string, std::deque<Mark>> speeds_;
};

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_JOB_CONCERNS_SLOW_WORKERS_H_

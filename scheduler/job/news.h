// What a scheduler's own log tells of its jobs: a line for each new condition.
// Tested by tests/scheduler/scheduler_test.cc, tests/scheduler/bounds_test.cc
#ifndef STRATA_SCHEDULER_JOB_NEWS_H_
#define STRATA_SCHEDULER_JOB_NEWS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "scheduler/job/machine.h"

namespace strata::scheduler {

// Not thread-safe.
class JobNews {
 public:
  // `log` gets each line, without its end; none: nothing is told.
  explicit JobNews(std::function<void(const std::string&)> log);

  // Tells the newest condition of each job that has another one than when it was last told.
  // Of jobs that are not among them it knows nothing any more.
  void Tell(const std::map<uint64_t, std::unique_ptr<JobMachine>>& jobs);
  // Jobs that were told of and may be told of again.
  size_t jobs() const { return told_.size(); }

 private:
  const std::function<void(const std::string&)> log_;
  std::map<uint64_t, std::string> told_;  // by job, the last line
};

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_JOB_NEWS_H_

// What is slow or stuck in a job, and since when: for people.
// Tested by tests/scheduler/job/machine_concerns_test.cc
#ifndef STRATA_SCHEDULER_JOB_CONCERNS_CONCERNS_H_
#define STRATA_SCHEDULER_JOB_CONCERNS_CONCERNS_H_

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/time/time.h"
#include "google/protobuf/repeated_field.h"
#include "proto/strata/job.pb.h"

namespace strata::scheduler {

// A pure state machine: one thread, no clock.
class Concerns {
 public:
  // A process that others cannot reach is told after so long: sooner it may be a restart.
  static constexpr absl::Duration kPatience = absl::Seconds(5);

  // All that is slow or stuck now, each once; `since_unix_ms` is when it began, 0: now. What is
  // seen again keeps its beginning; what is not has passed. Two are the same where reason, who and
  // other are.
  void Look(std::vector<Concern> seen, absl::Time now);
  void Clear() { standing_.clear(); }

  // The longest-standing first.
  google::protobuf::RepeatedPtrField<Concern> all() const;

 private:
  using Key = std::tuple<std::string, std::string, std::string>;
  std::map<Key, Concern> standing_;
};

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_JOB_CONCERNS_CONCERNS_H_

// What of a job's changes is worth an event: found by comparing its record with the one before.
#ifndef STRATA_SCHEDULER_JOB_EVENTS_H_
#define STRATA_SCHEDULER_JOB_EVENTS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "scheduler/state/state.pb.h"

namespace strata::scheduler {

struct JobEvent {
  std::string reason;
  std::string node;  // may be empty
  std::string message;
};

// A pure state machine, part of a JobMachine. What it remembers is a function of the job's record,
// so that a restored job goes on without repeating or missing an event.
class JobEvents {
 public:
  // What is in `record` was told before.
  void Begin(const JobStateRecord& record);

  // A condition was stated (machine.h).
  void Condition(absl::string_view reason, absl::string_view message);

  // Conditions stated and what differs from the record before, in a fixed order: placement,
  // conditions, servers that opened again, cuts, state.
  std::vector<JobEvent> Take(const JobStateRecord& record, const CutBook& cuts);

 private:
  struct Slot {
    std::string name;
    uint64_t generation = 0;
    uint64_t session = 0;
  };
  static std::vector<Slot> Slots(const JobStateRecord& record);
  void Placement(const JobStateRecord& record, std::vector<JobEvent>& out) const;
  void Reopened(const JobStateRecord& record, std::vector<JobEvent>& out) const;
  void Cuts(const CutBook& cuts, std::vector<JobEvent>& out);

  JobState state_ = PENDING;
  std::vector<Slot> slots_;
  uint64_t last_cut_ = 0;  // the newest that was told
  std::vector<JobEvent> conditions_;
};

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_JOB_EVENTS_H_

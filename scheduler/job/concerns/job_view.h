// A job as those see it who look for what is slow or stuck in it.
// Tested by tests/scheduler/job/machine_concerns_test.cc
#ifndef STRATA_SCHEDULER_JOB_CONCERNS_JOB_VIEW_H_
#define STRATA_SCHEDULER_JOB_CONCERNS_JOB_VIEW_H_

#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/repeated_field.h"
#include "proto/strata/control.pb.h"
#include "scheduler/nodes/membership.h"
#include "scheduler/state/state.pb.h"

namespace strata::scheduler {

// Pointers are the caller's, for one look.
struct JobView {
  struct Server {
    std::string name;
    const ServerJobReport* last = nullptr;
  };
  struct Worker {
    std::string name;  // empty: nobody has the slot
    const WorkerJobReport* last = nullptr;
  };
  const Membership* members = nullptr;
  std::vector<Server> servers;  // heads, by slot
  std::vector<Server> copies;   // of the same shards, on other servers
  std::vector<Worker> workers;  // by slot
  std::set<std::string> nodes;  // all that have a part in it, servers with copies as well
  const google::protobuf::RepeatedPtrField<StandingTrouble>* troubles = nullptr;
  bool bsp = true;
};

// For people: the role, a slash, the name.
std::string NameOf(NodeRole role, absl::string_view name);

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_JOB_CONCERNS_JOB_VIEW_H_
